package engine

import (
	"errors"
	"strconv"
)

// Limits of what the scanner holds. A real answer is 6 levels deep.
const (
	maxDepth = 64
	maxText  = 512 // bytes of a wanted string
	maxWord  = 64  // bytes of a key or number
)

// state of the scanner: what the next byte may be.
type state uint8

const (
	stateIdle     state = iota // before a document, or after one
	stateValue                 // a value must come
	stateFirst                 // after '[': a value or ']'
	stateFirstKey              // after '{': a key or '}'
	stateKey                   // after ',' in an object
	stateColon                 // after a key
	stateAfter                 // after a value inside a container
	stateString                // inside a string
	stateEscape                // after '\' inside a string
	stateUnicode               // inside the four digits of \uXXXX
	stateNumber                // inside a number
	stateLiteral               // inside true, false or null
	stateBad                   // not JSON: everything is ignored until reset
)

// scanner reads JSON as it flows by and reports the values at the paths of
// its tree. encoding/json needs a whole value in memory; an answer may be
// endless, and its text must not be kept. It checks the grammar, so that a
// document cut anywhere is never taken for a whole one; it does not check
// UTF-8.
type scanner struct {
	root *node
	// sink gets each value at a known path.
	sink func(*node, value)
	// closed is called at the end of each object at root: a document.
	closed func()

	state   state
	isKey   bool // the string being read is a key
	depth   int
	frames  [maxDepth]frame
	at      *node // where the value being read belongs; nil: nowhere known
	word    []byte
	filled  bool // the string being read is not empty
	cut     bool // word does not hold all of it
	escapes uint8
	literal string // what is left of the literal
	whole   value  // value of the literal
	values  int    // top-level values that have ended
}

type frame struct {
	node  *node
	array bool
}

func newScanner(root *node, sink func(*node, value), closed func()) *scanner {
	return &scanner{root: root, sink: sink, closed: closed, word: make([]byte, 0, maxWord)}
}

// reset forgets an unfinished or broken document.
func (s *scanner) reset() { s.state, s.depth, s.isKey = stateIdle, 0, false }

// complete says that nothing is left open since the last reset.
func (s *scanner) complete() bool { return s.state == stateIdle }

// feed reads the next bytes.
func (s *scanner) feed(p []byte) {
	for i := 0; i < len(p); {
		switch s.state {
		case stateBad:
			return
		case stateString:
			i += s.text(p[i:])
		case stateNumber:
			if c := p[i]; isNumber(c) {
				s.keep(c, maxWord)
				i++
			} else {
				s.number() // p[i] is read again, in the new state
			}
		default:
			s.step(p[i])
			i++
		}
	}
}

// step reads one byte outside of strings' plain text and numbers.
func (s *scanner) step(c byte) {
	switch s.state {
	case stateEscape:
		switch c {
		case 'u':
			s.escapes, s.state = 4, stateUnicode
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.state = stateString
		default:
			s.state = stateBad
			return
		}
		s.keepText(c)
		return
	case stateUnicode:
		if !isHex(c) {
			s.state = stateBad
			return
		}
		s.keepText(c)
		if s.escapes--; s.escapes == 0 {
			s.state = stateString
		}
		return
	case stateLiteral:
		if c != s.literal[0] {
			s.state = stateBad
			return
		}
		if s.literal = s.literal[1:]; s.literal == "" {
			s.report(s.whole)
			s.ended()
		}
		return
	}
	if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
		return
	}
	switch s.state {
	case stateIdle:
		s.at = s.root
		s.begin(c)
	case stateValue:
		s.begin(c)
	case stateFirst:
		if c == ']' {
			s.pop(true)
			return
		}
		s.begin(c)
	case stateFirstKey, stateKey:
		switch {
		case c == '"':
			s.isKey, s.cut, s.filled, s.word, s.state = true, false, false, s.word[:0], stateString
		case c == '}' && s.state == stateFirstKey:
			s.pop(false)
		default:
			s.state = stateBad
		}
	case stateColon:
		if c != ':' {
			s.state = stateBad
			return
		}
		s.state = stateValue
	case stateAfter:
		top := &s.frames[s.depth-1]
		switch {
		case c == ',' && top.array:
			s.state = stateValue
			s.at = top.elem()
		case c == ',':
			s.state = stateKey
		case c == ']' || c == '}':
			s.pop(c == ']')
		default:
			s.state = stateBad
		}
	}
}

// begin reads the first byte of a value.
func (s *scanner) begin(c byte) {
	switch {
	case c == '{':
		s.push(false)
	case c == '[':
		s.push(true)
	case c == '"':
		s.isKey, s.cut, s.filled, s.word, s.state = false, false, false, s.word[:0], stateString
	case c == '-' || c >= '0' && c <= '9':
		s.cut, s.word, s.state = false, append(s.word[:0], c), stateNumber
	case c == 't':
		s.literal, s.whole, s.state = "rue", value{kind: kindBool, truth: true}, stateLiteral
	case c == 'f':
		s.literal, s.whole, s.state = "alse", value{kind: kindBool}, stateLiteral
	case c == 'n':
		s.literal, s.whole, s.state = "ull", value{kind: kindNull}, stateLiteral
	default:
		s.state = stateBad
	}
}

func (s *scanner) push(array bool) {
	if s.depth == maxDepth {
		s.state = stateBad
		return
	}
	if array {
		s.report(value{kind: kindArray})
	} else {
		s.report(value{kind: kindObject})
	}
	s.frames[s.depth] = frame{s.at, array}
	s.depth++
	s.state = stateFirstKey
	if array {
		s.state = stateFirst
		s.at = s.frames[s.depth-1].elem()
	}
}

func (s *scanner) pop(array bool) {
	top := s.frames[s.depth-1]
	if top.array != array {
		s.state = stateBad
		return
	}
	s.depth--
	if top.node == s.root && !array {
		s.closed()
	}
	s.ended()
}

// ended goes on after a value.
func (s *scanner) ended() {
	s.state = stateAfter
	if s.depth == 0 {
		s.state = stateIdle
		s.values++
	}
}

func (f *frame) elem() *node {
	if f.node == nil {
		return nil
	}
	return f.node.elem
}

func (s *scanner) report(v value) {
	if s.at != nil && s.at.mean != nil {
		s.sink(s.at, v)
	}
}

// text reads a string's plain part and returns how many bytes it took.
func (s *scanner) text(p []byte) int {
	for i, c := range p {
		switch {
		case c == '"':
			s.plain(p[:i])
			s.endString()
			return i + 1
		case c == '\\':
			s.plain(p[:i])
			s.keepText('\\')
			s.filled = true
			s.state = stateEscape
			return i + 1
		case c < ' ':
			s.state = stateBad
			return i + 1
		}
	}
	s.plain(p)
	return len(p)
}

// plain keeps as much of a key or a wanted string as there is room for.
func (s *scanner) plain(p []byte) {
	if len(p) == 0 {
		return
	}
	s.filled = true
	limit := s.room()
	if room := limit - len(s.word); len(p) > room {
		s.cut = true
		p = p[:max(0, room)]
	}
	s.word = append(s.word, p...)
}

// room is how many bytes of the string being read are wanted.
func (s *scanner) room() int {
	switch {
	case s.isKey:
		return maxWord
	case s.at != nil && s.at.text:
		return maxText
	}
	return 0
}

func (s *scanner) keepText(c byte) { s.keep(c, s.room()) }

func (s *scanner) keep(c byte, limit int) {
	if len(s.word) >= limit {
		s.cut = true
		return
	}
	s.word = append(s.word, c)
}

func (s *scanner) endString() {
	if !s.isKey {
		s.report(value{kind: kindString, filled: s.filled, text: s.word})
		s.ended()
		return
	}
	s.isKey = false
	s.state = stateColon
	s.at = nil
	// A key with escapes is compared raw: no engine escapes its field names.
	if parent := s.frames[s.depth-1].node; parent != nil && !s.cut {
		s.at = parent.keys[string(s.word)]
	}
}

// number ends a number. Only wanted ones are parsed; the grammar is checked
// loosely, ParseFloat has the last word on wanted ones.
func (s *scanner) number() {
	s.ended()
	if s.at == nil || s.at.mean == nil || s.cut {
		return
	}
	n, err := parseNumber(s.word)
	switch {
	case err == nil:
		s.report(value{kind: kindNumber, number: n})
	case !errors.Is(err, strconv.ErrRange): // too large to mean anything: skipped
		s.state = stateBad
	}
}

// parseNumber is ParseFloat with a fast way for what most counts are: it runs
// on each chunk of each stream.
func parseNumber(word []byte) (float64, error) {
	if len(word) <= 9 {
		n := 0
		for i, c := range word {
			if c < '0' || c > '9' {
				break
			}
			if n = n*10 + int(c-'0'); i == len(word)-1 {
				return float64(n), nil
			}
		}
	}
	return strconv.ParseFloat(string(word), 64)
}

func isNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
