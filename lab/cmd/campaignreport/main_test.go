package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// campaign copies the files of a campaign, with at most some of its lines.
func campaign(t *testing.T, lines int) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"plan.json", "runs.jsonl"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "campaign", "report", "testdata", "small", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "runs.jsonl" {
			data = []byte(strings.Join(strings.SplitAfter(string(data), "\n")[:lines], ""))
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWritesReportAndDrawings(t *testing.T) {
	dir := campaign(t, 17)
	var stdout, stderr bytes.Buffer
	if code := run([]string{dir}, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), "4 drawings beside it") || !strings.Contains(stdout.String(), "**MET**") {
		t.Error(stdout.String())
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"strip.svg", "ecdf.svg", "strip.png", "ecdf.png"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
		if shown := strings.Contains(string(text), "]("+name+")"); shown != strings.HasSuffix(name, ".svg") {
			t.Errorf("%s: shown %v", name, shown)
		}
	}
}

// Before the first run there is nothing to draw, and a report that says so.
func TestNothingYet(t *testing.T) {
	dir := campaign(t, 0)
	var stdout, stderr bytes.Buffer
	if code := run([]string{dir}, &stdout, &stderr); code != 0 || !strings.Contains(stderr.String(), "not drawn: no run has a figure") {
		t.Errorf("exit %d: %s", code, &stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil || !strings.Contains(string(text), "18 of 18 planned runs were not made") || strings.Contains(string(text), "![") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "required argument 'dir' not provided"},
		{[]string{"--no-such-flag"}, 2, "unknown long flag"},
		{[]string{"--help"}, 0, "usage: campaignreport"},
		{[]string{filepath.Join(t.TempDir(), "nowhere")}, 1, "plan.json"},
	} {
		var out bytes.Buffer
		if code := run(c.args, &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: exit %d: %s", c.args, code, &out)
		}
	}
}
