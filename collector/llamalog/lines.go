package llamalog

import "bytes"

// A lineBuffer cuts bytes into lines. What of a line does not fit in max is
// dropped, and the line is marked.
type lineBuffer struct {
	max  int
	buf  []byte
	size int64 // bytes of the line so far, kept or not
	// skip drops everything up to the next line: reading began inside one.
	skip bool
	// firstNS and lastNS are when the line's first and last byte came.
	firstNS, lastNS int64
}

// A rawLine is one line without its end; text is valid until the next call.
type rawLine struct {
	text            []byte
	firstNS, lastNS int64
	cut             bool // longer than max
}

// next takes bytes up to the end of the line and returns what is left of b;
// ok says that a line is complete.
func (l *lineBuffer) next(b []byte, atNS int64) (line rawLine, rest []byte, ok bool) {
	if l.size == 0 {
		l.buf = l.buf[:0]
	}
	end := bytes.IndexByte(b, '\n')
	part, rest := b, b[len(b):]
	if end >= 0 {
		part, rest = b[:end], b[end+1:]
	}
	if len(part) > 0 {
		if l.size == 0 {
			l.firstNS = atNS
		}
		l.lastNS = atNS
		l.size += int64(len(part))
		l.buf = append(l.buf, part[:min(len(part), l.max-len(l.buf))]...)
	}
	if end < 0 {
		return rawLine{}, rest, false
	}
	line = rawLine{text: l.buf, firstNS: l.firstNS, lastNS: l.lastNS, cut: l.size > int64(l.max)}
	if l.size == 0 {
		line.firstNS, line.lastNS = atNS, atNS
	}
	line.text = bytes.TrimSuffix(line.text, []byte("\r"))
	ok = !l.skip
	l.size, l.skip = 0, false
	return line, rest, ok
}

// drop forgets the line begun.
func (l *lineBuffer) drop() { l.size, l.skip = 0, false }
