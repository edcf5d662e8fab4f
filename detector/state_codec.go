package detector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// A saved state is a header and a payload:
//
//	 0  8  magic "GRAYFAIL"
//	 8  2  version, little endian
//	10  2  0
//	12  8  length of the payload
//	20  4  CRC-32C of the 20 bytes before and of the payload
//	24     payload
//
// The header is the same in every version, so that a newer one is told from a
// damaged one.
const (
	stateMagic   = "GRAYFAIL"
	stateVersion = 1
	stateHeader  = 24
)

// What can be wrong with a saved state; compare with errors.Is.
var (
	ErrStateForeign   = errors.New("not a state of grayfail_exporter")
	ErrStateTruncated = errors.New("the state is cut off")
	ErrStateCorrupt   = errors.New("the state is damaged")
	ErrStateNewer     = errors.New("the state is of a newer version")
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // made once, by the library

func stateSum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header, castagnoli()), castagnoli(), payload)
}

// sealState fills in the header of b, whose payload starts at stateHeader.
func sealState(b []byte) {
	copy(b, stateMagic)
	binary.LittleEndian.PutUint16(b[8:], stateVersion)
	binary.LittleEndian.PutUint16(b[10:], 0)
	binary.LittleEndian.PutUint64(b[12:], uint64(len(b)-stateHeader))
	binary.LittleEndian.PutUint32(b[20:], stateSum(b[:20], b[stateHeader:]))
}

// openState checks the header and returns the payload.
func openState(b []byte) ([]byte, error) {
	if n := min(len(b), len(stateMagic)); n == 0 || string(b[:n]) != stateMagic[:n] {
		return nil, ErrStateForeign
	}
	if len(b) < stateHeader {
		return nil, fmt.Errorf("%w: %d bytes", ErrStateTruncated, len(b))
	}
	payload, want := b[stateHeader:], binary.LittleEndian.Uint64(b[12:])
	if uint64(len(payload)) < want {
		return nil, fmt.Errorf("%w: %d of %d bytes", ErrStateTruncated, len(payload), want)
	}
	if uint64(len(payload)) > want {
		return nil, fmt.Errorf("%w: %d bytes follow its end", ErrStateCorrupt, uint64(len(payload))-want)
	}
	if stateSum(b[:20], payload) != binary.LittleEndian.Uint32(b[20:]) {
		return nil, fmt.Errorf("%w: its checksum does not match", ErrStateCorrupt)
	}
	switch version := binary.LittleEndian.Uint16(b[8:]); {
	case version > stateVersion:
		return nil, fmt.Errorf("%w: %d, this program reads up to %d", ErrStateNewer, version, stateVersion)
	case version == 0:
		return nil, fmt.Errorf("%w: version 0", ErrStateCorrupt)
	}
	return payload, nil
}

// stateWriter appends values to a payload.
type stateWriter struct{ b []byte }

func (w *stateWriter) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *stateWriter) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }
func (w *stateWriter) count(n int)   { w.uint(uint64(n)) }
func (w *stateWriter) byte(v uint8)  { w.b = append(w.b, v) }
func (w *stateWriter) f64(v float64) {
	w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v))
}
func (w *stateWriter) f32(v float32) {
	w.b = binary.LittleEndian.AppendUint32(w.b, math.Float32bits(v))
}
func (w *stateWriter) text(s string) { w.count(len(s)); w.b = append(w.b, s...) }
func (w *stateWriter) bool(v bool) {
	if v {
		w.byte(1)
		return
	}
	w.byte(0)
}

// stateReader takes them off again. The first error stays; what is read after
// it is zero.
type stateReader struct {
	b   []byte
	err error
}

func (r *stateReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrStateCorrupt}, args...)...)
		r.b = nil
	}
}

func (r *stateReader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("a number is missing")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *stateReader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail("a number is missing")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// take returns the next n bytes; nil when there are fewer.
func (r *stateReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail("%d bytes are missing", n-len(r.b))
		return nil
	}
	part := r.b[:n]
	r.b = r.b[n:]
	return part
}

// count of elements that take at least size bytes each: what memory is made
// for is in the file.
func (r *stateReader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.b)/size) {
		r.fail("%d elements are announced in %d bytes", n, len(r.b))
		return 0
	}
	return int(n)
}

func (r *stateReader) byte() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *stateReader) bool() bool { return r.byte() != 0 }

// f64 is a finite number that is not negative: all that are kept are.
func (r *stateReader) f64() float64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if !(v >= 0) || math.IsInf(v, 0) {
		r.fail("%g is no rate and no span", v)
		return 0
	}
	return v
}

func (r *stateReader) f32() float32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	v := math.Float32frombits(binary.LittleEndian.Uint32(b))
	if v != v || math.IsInf(float64(v), 0) {
		r.fail("%g is no span", v)
		return 0
	}
	return v
}

func (r *stateReader) text() string { return string(r.take(r.count(1))) }

// small is a number that counts things in memory.
func (r *stateReader) small() int {
	v := r.uint()
	if v > math.MaxInt32 {
		r.fail("%d is too large a count", v)
		return 0
	}
	return int(v)
}

// time is event time: Unix ns, or 0.
func (r *stateReader) time() int64 {
	v := r.int()
	if v < 0 || v > math.MaxInt64/2 {
		r.fail("%d is no time", v)
		return 0
	}
	return v
}
