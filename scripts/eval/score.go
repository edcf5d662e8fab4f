package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A request below surely of its control's median must be found, one above
// never must not: between them the rolling baseline may say either.
const (
	surely = 0.45
	rule   = 0.5
	never  = 0.6
)

// score of one recording, of decode.
type score struct {
	requests, slow, found int // slow: measured, r < rule; found: flagged
	hits                  int // found and slow
	right, wrong, abstain int // of those found
	failures              []string
}

// judge compares the rows with the measured truth.
func judge(t truth, requests []request, rows []row) score {
	s := score{requests: len(requests)}
	if len(requests) == 0 {
		s.fail("no requests")
		return s
	}
	usual := medians(requests)
	byID := make(map[string]row)
	for _, r := range rows {
		byID[r.ID] = r
	}
	if len(byID) != len(requests) {
		s.fail("%d decode rows for %d requests", len(byID), len(requests))
	}
	for _, q := range requests {
		control := requests[0].Condition
		if c, ok := t.Control[q.Condition]; ok {
			control = c
		}
		r := q.Rate / usual[control]
		row := byID[q.ID]
		flagged := row.Verdict == "slow"
		if r < rule {
			s.slow++
		}
		if flagged && r < rule {
			s.hits++
		}
		// The first requests have no ready baseline: unknown is right for them.
		if r < surely && !flagged && row.Verdict != "unknown" {
			s.fail("%s ran at %.2f and is called %s", q.ID, r, row.Verdict)
		}
		if r < surely && row.Verdict == "unknown" && q.Condition != control {
			s.fail("%s ran at %.2f and is called unknown", q.ID, r)
		}
		if r > never && flagged {
			s.fail("%s ran at %.2f and is called slow", q.ID, r)
		}
		if flagged {
			s.found++
			s.name(t, row)
		}
	}
	if s.right*10 < s.found*9 {
		s.fail("only %d of %d are named", s.right, s.found)
	}
	return s
}

// name judges who is blamed. Naming nobody is no error, naming the wrong one is.
func (s *score) name(t truth, r row) {
	switch {
	case slices.Contains(t.Causes, r.Cause) && r.Leg == t.Leg:
		s.right++
	case r.Leg == "" && (r.Cause == "unattributed" || r.Cause == "common_cause"):
		s.abstain++
	default:
		s.wrong++
		s.fail("%s is blamed on %q, leg %q", r.ID, r.Cause, r.Leg)
	}
}

// compare wants the same answers from the coordinator's lines alone.
func (s *score) compare(all, alone []row) {
	if !slices.Equal(all, alone) {
		s.fail("other answers without the worker's lines")
	}
}

func (s *score) fail(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

func header(w io.Writer) {
	fmt.Fprintf(w, "%-26s %8s %5s %5s %9s %6s %5s %5s %5s %7s\n",
		"recording", "requests", "slow", "found", "precision", "recall", "F1", "right", "wrong", "abstain")
}

func (s *score) print(w io.Writer, name string) {
	precision, recall := ratio(s.hits, s.found), ratio(s.hits, s.slow)
	f1 := "-"
	if s.hits > 0 {
		f1 = ratio(2*s.hits, s.found+s.slow)
	}
	fmt.Fprintf(w, "%-26s %8d %5d %5d %9s %6s %5s %5d %5d %7d\n", strings.TrimSuffix(name, ".jsonl.gz"),
		s.requests, s.slow, s.found, precision, recall, f1, s.right, s.wrong, s.abstain)
	for _, f := range s.failures {
		fmt.Fprintf(w, "    FAILED: %s\n", f)
	}
}

func ratio(a, b int) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

// medians of the rates by condition.
func medians(requests []request) map[string]float64 {
	rates := make(map[string][]float64)
	for _, r := range requests {
		rates[r.Condition] = append(rates[r.Condition], r.Rate)
	}
	out := make(map[string]float64)
	for c, v := range rates {
		slices.Sort(v)
		out[c] = (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	return out
}
