package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// What a file of runs may hold; a campaign has some hundreds of lines of 1 kB.
const (
	maxLine = 1 << 20
	maxRuns = 1 << 20
)

// LineError is a line of runs.jsonl that cannot be used.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap gives the reason.
func (e *LineError) Unwrap() error { return e.Err }

// Runs is the content of one runs.jsonl.
type Runs struct {
	Runs []Run // in the order of the file
	// Cut says that the file ends inside a line: the program was stopped while it
	// wrote. What is before it counts.
	Cut bool
}

// Read reads runs.jsonl. Any line that is broken, of another version, of
// another specification or of a run that is already there is a LineError, but
// for a last line that was cut off.
func Read(from io.Reader) (Runs, error) {
	var out Runs
	type key struct{ run, stream int }
	valid := make(map[key]int) // line of the valid record
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	lines.Split(withNewline)
	n := 0
	for lines.Scan() {
		n++
		fail := func(format string, args ...any) (Runs, error) {
			return out, &LineError{n, fmt.Errorf(format, args...)}
		}
		line, whole := bytes.CutSuffix(lines.Bytes(), []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		run, err := decode(line)
		switch {
		case err != nil && !whole && isCut(line):
			out.Cut = true
			continue
		case err != nil:
			return fail("%w", err)
		case len(out.Runs) == maxRuns:
			return fail("more than %d runs", maxRuns)
		case len(out.Runs) > 0 && run.SpecHash != out.Runs[0].SpecHash:
			return fail("spec_hash: %s, but the runs before it are of %s", run.SpecHash, out.Runs[0].SpecHash)
		}
		// An invalid run may be done again under its number.
		k := key{run.Run, run.Stream}
		if first := valid[k]; first != 0 {
			return fail("run %d stream %d: is on line %d already", run.Run, run.Stream, first)
		}
		if run.Valid {
			valid[k] = n
		}
		out.Runs = append(out.Runs, run)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return out, &LineError{n + 1, fmt.Errorf("longer than %d bytes", maxLine)}
	} else if err != nil {
		return out, err
	}
	return out, nil
}

func decode(line []byte) (Run, error) {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(line, &version); err != nil {
		return Run{}, err
	}
	var run Run
	if version.Version != RunVersion { // its keys may be others: only the version matters
		run.Version = version.Version
		return run, run.Check()
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&run); err != nil {
		return Run{}, err
	}
	return run, run.Check()
}

// isCut says that the line is the beginning of an object.
func isCut(line []byte) bool {
	var object json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(line)).Decode(&object), io.ErrUnexpectedEOF)
}

// withNewline is bufio.ScanLines that leaves the newline, by which a whole last
// line differs from one that was cut off.
func withNewline(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
