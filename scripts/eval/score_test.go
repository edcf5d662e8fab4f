package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// elevenOf makes ten usual requests at 100 tok/s and one at rate.
func elevenOf(rate float64) ([]request, []row) {
	var requests []request
	var rows []row
	for i := range 10 {
		id := fmt.Sprintf("r%d", i)
		requests = append(requests, request{ID: id, Condition: "baseline", Rate: 100})
		rows = append(rows, row{ID: id, Phase: "decode", Verdict: "unknown"})
	}
	requests = append(requests, request{ID: "x", Condition: "fault", Rate: rate})
	return requests, rows
}

func TestJudge(t *testing.T) {
	lossOnB := truth{Causes: []string{"loss"}, Leg: "rpc-b"}
	nobody := truth{}
	for name, c := range map[string]struct {
		truth truth
		rate  float64
		row   row
		want  string // the failure, "" for none
	}{
		"named right":         {lossOnB, 20, row{Verdict: "slow", Cause: "loss", Leg: "rpc-b"}, ""},
		"wrong leg":           {lossOnB, 20, row{Verdict: "slow", Cause: "loss", Leg: "rpc-a"}, "blamed on"},
		"wrong cause":         {lossOnB, 20, row{Verdict: "slow", Cause: "delay", Leg: "rpc-b"}, "blamed on"},
		"nobody named":        {lossOnB, 20, row{Verdict: "slow", Cause: "unattributed"}, "only 0 of 1"},
		"missed":              {lossOnB, 20, row{Verdict: "ok"}, "called ok"},
		"missed as unknown":   {lossOnB, 20, row{Verdict: "unknown"}, "called unknown"},
		"false alarm":         {lossOnB, 90, row{Verdict: "slow", Cause: "loss", Leg: "rpc-b"}, "called slow"},
		"in between, either":  {lossOnB, 55, row{Verdict: "slow", Cause: "loss", Leg: "rpc-b"}, ""},
		"in between, other":   {lossOnB, 48, row{Verdict: "ok"}, ""},
		"nobody may be slow":  {nobody, 55, row{Verdict: "slow", Cause: "loss", Leg: "rpc-b"}, "blamed on"},
		"nobody is slow":      {nobody, 90, row{Verdict: "ok"}, ""},
		"own control, no dip": {truth{Control: map[string]string{"fault": "fault"}}, 45, row{Verdict: "ok"}, ""},
	} {
		requests, rows := elevenOf(c.rate)
		c.row.ID, c.row.Phase = "x", "decode"
		s := judge(c.truth, requests, append(rows, c.row))
		got := strings.Join(s.failures, "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: failures %q, want %q", name, got, c.want)
		}
	}
}

func TestEveryRequestNeedsARow(t *testing.T) {
	requests, rows := elevenOf(100)
	if s := judge(truth{}, requests, rows); len(s.failures) != 1 {
		t.Errorf("a missing row: failures %q", s.failures)
	}
	if s := judge(truth{}, nil, nil); len(s.failures) != 1 {
		t.Errorf("an empty recording: failures %q", s.failures)
	}
}

func TestCompare(t *testing.T) {
	var s score
	s.compare([]row{{ID: "a", Cause: "loss"}}, []row{{ID: "a", Cause: "delay"}})
	if len(s.failures) != 1 {
		t.Error("other answers pass as the same")
	}
}

// A truth without its recording is an error, and so is the reverse.
func TestSameFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl.gz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sameFiles([]truth{{File: "a.jsonl.gz"}}, dir); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]truth{{}, {{File: "a.jsonl.gz"}, {File: "b.jsonl.gz"}}} {
		if err := sameFiles(bad, dir); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

func TestTruthIsReadable(t *testing.T) {
	truths, err := readTruth("truth.yml")
	if err != nil || len(truths) < 10 {
		t.Fatalf("%d truths: %v", len(truths), err)
	}
	var out, stderr bytes.Buffer
	if code := run([]string{"-truth", "truth.yml", "-recordings", t.TempDir()}, &out, &stderr); code != 1 || !strings.Contains(stderr.String(), "recordings are") {
		t.Errorf("without recordings: exit %d, %s", code, &stderr)
	}
}
