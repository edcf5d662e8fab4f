package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"grayfail/event"
)

// maxLine bounds a line; a longer one is a bad line, and reading goes on after
// it.
const maxLine = 1 << 20

// Input is one recording.
type Input struct {
	Name string
	// Open is called twice, and must give the same bytes.
	Open func() (io.ReadCloser, error)
}

// BadLine is a line that could not be used; Line 0 stands for the input as a
// whole, such as a gzip stream that ends too early.
type BadLine struct {
	File string
	Line int
	Err  error
}

func (b BadLine) Error() string {
	if b.Line == 0 {
		return fmt.Sprintf("%s: %v", b.File, b.Err)
	}
	return fmt.Sprintf("%s:%d: %v", b.File, b.Line, b.Err)
}

func (b BadLine) Unwrap() error { return b.Err }

var errTooLong = fmt.Errorf("line is longer than %d bytes", maxLine)

// errCut says that the input ended in the middle: what was read counts.
var errCut = errors.New("input ends too early")

// scanner reads records from one input.
type scanner struct {
	name   string
	closer io.Closer
	in     *bufio.Reader
	line   int
	buf    []byte
	done   bool
	some   bool // there was a byte
	// skip says that a line cannot hold what the caller wants; it is not
	// parsed then.
	skip func(line []byte) bool
}

// open starts reading; gzip is told by its magic bytes.
func open(input Input) (*scanner, error) {
	file, err := input.Open()
	if err != nil {
		return nil, err
	}
	s := &scanner{name: input.Name, closer: file, in: bufio.NewReaderSize(file, 1<<16)}
	if magic, _ := s.in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(s.in)
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("gzip: %w", err)
		}
		s.in = bufio.NewReaderSize(unzipped, 1<<16)
	}
	return s, nil
}

func (s *scanner) close() { _ = s.closer.Close() }

// next returns the next record; a BadLine as error for a line that cannot be
// read, after which reading goes on; io.EOF at the end.
func (s *scanner) next() (event.Record, error) {
	for !s.done {
		line, err := s.read()
		if err != nil && !errors.Is(err, errTooLong) {
			s.done = true
			if !errors.Is(err, io.EOF) {
				// A cut line is not a line.
				return nil, BadLine{s.name, s.line, fmt.Errorf("%w: %w", errCut, err)}
			}
		}
		if len(line) == 0 && err == nil {
			continue
		}
		if errors.Is(err, errTooLong) {
			return nil, BadLine{s.name, s.line, err}
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 || (s.skip != nil && s.skip(line)) {
			continue
		}
		rec, err := event.ParseRecord(line)
		if err != nil {
			return nil, BadLine{s.name, s.line, err}
		}
		if r, is := rec.(*event.Request); is && r.ID == "" {
			r.ID = fmt.Sprintf("line-%d", s.line) // by which it can be found
		}
		return rec, nil
	}
	return nil, io.EOF
}

// read returns one line without its end. At the end of the input it returns
// what is left with io.EOF.
func (s *scanner) read() ([]byte, error) {
	s.buf = s.buf[:0]
	s.line++
	tooLong := false
	for {
		part, err := s.in.ReadSlice('\n')
		s.some = s.some || len(part) > 0
		if len(s.buf)+len(part) > maxLine {
			tooLong = true
		} else {
			s.buf = append(s.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong:
			return nil, errTooLong
		}
		return s.buf, err
	}
}
