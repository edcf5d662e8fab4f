package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"grayfail/lab/vm/internal/spec"
)

// Test is one test function or subtest.
type Test struct {
	Name   string // "TestX" or "TestX/sub"
	Output string
	// Failed: it failed, was skipped (what cannot run there has failed) or
	// never ended.
	Failed bool
}

// read turns a step's output file into its Result.
func (p *place) read(ctx context.Context, step *spec.Result, path string) (Result, error) {
	// test2json gives a test that never ended the result of the program, and
	// fails itself when that failed.
	const replay = `go tool test2json sh -c 'cat "$0"; exit "$1"' "$@" || test "$2" != 0`
	events, err := command(ctx, p.module, "sh", "-c", replay, "sh", path, strconv.Itoa(step.Exit&0xff))
	if err != nil {
		return Result{}, err
	}
	r := Result{Package: step.Name}
	r.Tests, r.Output, err = parseEvents(events)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", step.Name, err)
	}
	failed := false
	for _, t := range r.Tests {
		failed = failed || t.Failed
	}
	switch {
	case step.Error != "":
		r.Err = errors.New(step.Error)
	case step.Exit != 0 && !failed:
		r.Err = fmt.Errorf("exit status %d, and no test failed", step.Exit)
	case len(r.Tests) == 0:
		r.Err = errors.New("no test ran")
	}
	return r, nil
}

// event is a line of test2json (go doc test2json).
type event struct {
	Action, Test, Output string
}

// parseEvents reads the output of test2json.
func parseEvents(text string) (tests []Test, rest string, err error) {
	var other strings.Builder
	at := make(map[string]int)
	ended := make(map[string]bool)
	for line := range strings.Lines(text) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, "", fmt.Errorf("test2json: %w: %q", err, line)
		}
		if e.Test == "" {
			other.WriteString(e.Output)
			continue
		}
		i, known := at[e.Test]
		if !known {
			i = len(tests)
			at[e.Test] = i
			tests = append(tests, Test{Name: e.Test})
		}
		t := &tests[i]
		switch e.Action {
		case "output":
			t.Output += e.Output
		case "pass":
			ended[e.Test] = true
		case "fail":
			t.Failed = true
			ended[e.Test] = true
		case "skip":
			t.Failed = true
			t.Output += "skipped: what cannot run in the guest has failed there\n"
			ended[e.Test] = true
		}
	}
	for i := range tests {
		if !ended[tests[i].Name] {
			tests[i].Failed = true
			tests[i].Output += "never ended\n"
		}
	}
	return tests, other.String(), nil
}
