package engine

import "bytes"

// sse takes the event stream format apart (HTML standard, section 9.2.6) as
// far as engines use it: lines end in LF, CRLF or CR; the space after "data:"
// is optional; several data lines make one payload joined by LF; everything
// else is skipped, however long. It holds no line.
type sse struct {
	// data gets the payload in pieces, event its end.
	data  func([]byte)
	event func()
	// failed is called for a line of the field "error": what llama.cpp sent
	// in place of "data" before 2024.
	failed func()
	// comment gets a comment in pieces, after a nil that begins it; it may be
	// nil itself.
	comment func([]byte)

	part     ssePart
	name     [8]byte // of the field, as far as it is kept
	nameLen  int
	afterCR  bool // a LF now belongs to the CR before it
	lines    int  // data lines of this event
	head     [8]byte
	size     int  // bytes of this payload line
	done     bool // a payload "[DONE]" has passed
	anything bool // a field or comment has passed
}

// ssePart is the part of a line that the next byte belongs to.
type ssePart uint8

const (
	sseName  ssePart = iota
	sseSpace         // right after the colon of "data:"
	sseData
	sseComment
	sseSkip // a field of no interest
)

const doneMark = "[DONE]"

func (s *sse) feed(p []byte) {
	for i := 0; i < len(p); {
		c := p[i]
		if s.afterCR {
			s.afterCR = false
			if c == '\n' {
				i++
				continue
			}
		}
		if c == '\n' || c == '\r' {
			s.afterCR = c == '\r'
			s.endLine()
			i++
			continue
		}
		switch s.part {
		case sseName:
			s.inName(c)
			i++
		case sseSpace:
			s.part = sseData
			if c == ' ' {
				i++
			}
		default:
			end := i + lineEnd(p[i:])
			switch s.part {
			case sseData:
				s.payload(p[i:end])
			case sseComment:
				s.comment(p[i:end])
			}
			i = end
		}
	}
}

// lineEnd is how far the line goes on.
func lineEnd(p []byte) int {
	if n := bytes.IndexByte(p, '\n'); n >= 0 {
		p = p[:n]
	}
	if n := bytes.IndexByte(p, '\r'); n >= 0 {
		p = p[:n]
	}
	return len(p)
}

func (s *sse) inName(c byte) {
	if c != ':' {
		if s.nameLen < len(s.name) {
			s.name[s.nameLen] = c
		}
		s.nameLen++
		return
	}
	s.anything = true
	switch s.field() {
	case "data":
		s.part = sseSpace
		if s.lines++; s.lines > 1 {
			s.data([]byte{'\n'})
		}
		s.size = 0
	case "error":
		s.failed()
		s.part = sseSkip
	case "":
		s.part = sseSkip
		if s.comment != nil {
			s.part = sseComment
			s.comment(nil)
		}
	default:
		s.part = sseSkip
	}
}

// field is the name so far; the byte order mark a stream may begin with is
// left out.
func (s *sse) field() string {
	if s.nameLen > len(s.name) {
		return "(long)"
	}
	return string(bytes.TrimPrefix(s.name[:s.nameLen], []byte("\xef\xbb\xbf")))
}

func (s *sse) payload(p []byte) {
	if s.size < len(s.head) {
		copy(s.head[s.size:], p)
	}
	s.size += len(p)
	s.data(p)
}

func (s *sse) endLine() {
	if s.part == sseName && s.nameLen == 0 && s.lines > 0 {
		s.lines = 0
		s.event()
	}
	s.finish()
	s.part, s.nameLen, s.size = sseName, 0, 0
}

// finish looks at the line that has ended, or that the stream was left in.
func (s *sse) finish() {
	if s.part == sseData && s.size == len(doneMark) && string(s.head[:s.size]) == doneMark {
		s.done = true
	}
}
