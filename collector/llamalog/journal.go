package llamalog

import (
	"bytes"
	"encoding/binary"
)

// A journal reads "journalctl -o export": FIELD=value lines, an empty line
// after each entry. A value with control characters (colours) is written as
// the name alone, its length in 8 bytes little-endian, the value, a newline.
// https://systemd.io/JOURNAL_EXPORT_FORMATS/
type journal struct {
	inside bool // an entry has begun
	wallNS int64
	// A binary value is being read while head counts its 8 length bytes, then
	// left its bytes and the newline.
	binary    bool
	head      []byte
	left      uint64
	isMessage bool
	value     []byte
}

// line looks at one line; taken says that it belonged to an entry, message is
// the text of the engine's line if it was that.
func (j *journal) line(line []byte) (message []byte, taken bool) {
	if !j.inside {
		j.inside = bytes.HasPrefix(line, []byte("__CURSOR="))
		return nil, j.inside
	}
	if len(line) == 0 {
		*j = journal{value: j.value[:0], head: j.head[:0]}
		return nil, true
	}
	name, value, ok := bytes.Cut(line, []byte("="))
	if !fieldName(name) {
		*j = journal{} // no export after all
		return nil, false
	}
	switch {
	case !ok:
		j.binary, j.isMessage = true, string(name) == "MESSAGE"
		j.head, j.value = j.head[:0], j.value[:0]
	case string(name) == "__REALTIME_TIMESTAMP":
		j.wallNS = realtime(value)
	case string(name) == "MESSAGE":
		return value, true
	}
	return nil, true
}

// maxField is what journald takes at most of one line (LineMax), and more.
const maxField = 64 << 20

// fieldName: journald's fields are capitals, digits and underscores.
func fieldName(b []byte) bool {
	for _, c := range b {
		if c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 64
}

// bytes takes a binary value's bytes; done says that the value is whole, and
// message is what of it is kept when it was the engine's line.
func (j *journal) bytes(b []byte) (rest, message []byte, done bool) {
	if need := 8 - len(j.head); need > 0 {
		n := min(need, len(b))
		j.head, b = append(j.head, b[:n]...), b[n:]
		if len(j.head) < 8 {
			return b, nil, false
		}
		j.left = binary.LittleEndian.Uint64(j.head)
		if j.left > maxField {
			*j = journal{} // no export after all
			return b, nil, false
		}
	}
	n := min(j.left, uint64(len(b)))
	if room := maxText - len(j.value); j.isMessage && room > 0 {
		j.value = append(j.value, b[:min(n, uint64(room))]...)
	}
	j.left, b = j.left-n, b[n:]
	if j.left > 0 || len(b) == 0 {
		return b, nil, false // the newline is still to come
	}
	j.binary = false
	if j.isMessage {
		return b[1:], j.value, true
	}
	return b[1:], nil, false
}
