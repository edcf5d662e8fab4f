package push

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// errBroken says that the body could not be read to its end.
var errBroken = errors.New("the body could not be read to its end")

// records cuts a body into records: its lines that are not blank, or, where
// all of it is one JSON object, that object, however many lines it takes.
type records struct {
	one    []byte // the only record
	in     *bufio.Reader
	max    int
	number int // of the last line
}

func newRecords(body io.Reader, max int) *records {
	r := &records{max: max}
	head, err := io.ReadAll(io.LimitReader(body, int64(max)+1))
	if text := trim(head); err == nil && len(text) <= max && len(text) > 0 && text[0] == '{' && json.Valid(text) {
		r.one = text
		r.number = 1 + bytes.Count(head[:bytes.IndexByte(head, '{')], []byte("\n"))
		return r
	}
	rest := body
	if err != nil {
		rest = failed{err}
	}
	r.in = bufio.NewReader(io.MultiReader(bytes.NewReader(head), rest))
	return r
}

// failed is what is left of a body after err.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// next returns a record without white space around it, and the number of its
// (first) line. io.EOF ends the body; errBroken and *http.MaxBytesError end
// it too; any other error is about that line alone.
func (r *records) next() ([]byte, int, error) {
	if r.in == nil {
		one := r.one
		if r.one = nil; one == nil {
			return nil, r.number, io.EOF
		}
		return one, r.number, nil
	}
	for {
		line, err := r.line()
		if err != nil {
			return nil, r.number, err
		}
		if line = trim(line); len(line) > 0 {
			return line, r.number, nil
		}
	}
}

// line reads up to the end of a line. The last line needs none.
func (r *records) line() ([]byte, error) {
	var line []byte
	size := 0
	for r.number++; ; {
		part, err := r.in.ReadSlice('\n')
		size += len(part)
		if size <= r.max+1 { // and the line's end
			line = append(line, part...)
		}
		var tooLarge *http.MaxBytesError
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.As(err, &tooLarge):
			return nil, err
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: %w", errBroken, err)
		case err != nil && size == 0:
			return nil, io.EOF
		case size > r.max+1:
			return nil, fmt.Errorf("the record is longer than %d bytes", r.max)
		}
		return line, nil
	}
}

// trim is what JSON calls white space.
func trim(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }
