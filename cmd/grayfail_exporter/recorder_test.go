package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grayfail/event"
)

func record(t *testing.T, path string, maxBytes int64, records ...event.Record) *recorder {
	t.Helper()
	r, err := newRecorder(path, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		r.write(rec)
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecorderWritesWhatReplayReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl.gz")
	want := []event.Record{
		&event.Exchange{Leg: "b", SendNS: 7, Duration: 9, OutOfOrder: 1, Open: true, Flow: event.Flow{Socket: 3}},
		&event.Retransmit{Leg: "b", TimeNS: 8, Kind: event.RetransmitRTO, Side: event.SideCoordinator},
		&event.Qdisc{TimeNS: 9, Device: "eth0", Kind: "tbf", Handle: "1:", Packets: 5, Drops: 2},
		&event.LegChange{TimeNS: 10, Leg: "b", Transport: event.TransportTCP, Device: "eth0"},
		&event.Connection{Leg: "b", StartNS: 9, EndNS: 10},
		&event.Request{ID: "r", Model: "m", EndNS: 11, DecodeRate: 3, GeneratedTokens: 9, Outcome: event.OutcomeOK},
	}
	record(t, path, 1<<20, want...)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(gz)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), text)
	}
	for i, line := range lines {
		got, err := event.ParseRecord([]byte(line))
		if err != nil {
			t.Errorf("line %d: %v: %s", i+1, err, line)
			continue
		}
		again := filepath.Join(t.TempDir(), "again.jsonl")
		record(t, again, 1<<20, got)
		if text, err := os.ReadFile(again); err != nil || strings.TrimSpace(string(text)) != line {
			t.Errorf("line %d changes when read and written again (%v):\n%s%s", i+1, err, text, line)
		}
	}
}

func TestRecorderStopsAtItsBoundAndSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	ex := &event.Exchange{Leg: "b", SendNS: 7}
	r := record(t, path, 500, ex, ex, ex, ex)
	if r.problem().Reason != "recording_size_limit" {
		t.Errorf("problem = %+v", r.problem())
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 500 || info.Size() == 0 {
		t.Errorf("size %v, %v", info, err)
	}
}

func TestRecorderSurvivesAFullDisk(t *testing.T) {
	r, err := newRecorder(filepath.Join(t.TempDir(), "r.jsonl"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.file.Close()
	r.file = full
	r.write(&event.Exchange{Leg: "b", SendNS: 7})
	r.flush()
	if p := r.problem(); p.Reason != "recording_failed" || !strings.Contains(p.Detail, "no space left") {
		t.Errorf("problem = %+v", p)
	}
	r.write(&event.Exchange{Leg: "b", SendNS: 8})
	if err := r.close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestRecorderContinuesARecording(t *testing.T) {
	for _, name := range []string{"r.jsonl", "r.jsonl.gz"} {
		path := filepath.Join(t.TempDir(), name)
		record(t, path, 1<<20, &event.Retransmit{Leg: "b", TimeNS: 8, Kind: event.RetransmitRTO, Side: event.SideCoordinator})
		record(t, path, 1<<20, &event.Request{ID: "after", Model: "m", EndNS: 11, DecodeRate: 3, Outcome: event.OutcomeOK})
		var out, errs strings.Builder
		if code := run(t.Context(), []string{"replay", "--json", path}, &out, &errs); code != exitOK || errs.Len() > 0 || !strings.Contains(out.String(), `"after"`) {
			t.Errorf("%s: exit %d %s %s", name, code, &errs, &out)
		}
	}
}

// TestRecorderLeavesWholeRecords: what a kill leaves is what was flushed, and
// that can be read and continued, gzip too.
func TestRecorderLeavesWholeRecords(t *testing.T) {
	for _, name := range []string{"r.jsonl", "r.jsonl.gz"} {
		path := filepath.Join(t.TempDir(), name)
		killed, err := newRecorder(path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		killed.write(&event.Request{ID: "kept", Model: "m", EndNS: 11, DecodeRate: 3, Outcome: event.OutcomeOK})
		killed.flush()
		killed.write(&event.Request{ID: "lost", Model: "m", EndNS: 12, DecodeRate: 3, Outcome: event.OutcomeOK})
		_ = killed.file.Close()
		record(t, path, 1<<20, &event.Request{ID: "after", Model: "m", EndNS: 13, DecodeRate: 3, Outcome: event.OutcomeOK})
		var out, errs strings.Builder
		code := run(t.Context(), []string{"replay", "--json", path}, &out, &errs)
		if code != exitOK || errs.Len() > 0 || !strings.Contains(out.String(), `"kept"`) || !strings.Contains(out.String(), `"after"`) {
			t.Errorf("%s: exit %d %s %s", name, code, &errs, &out)
		}
	}
}

func TestRecorderNeedsAFileItCanOpen(t *testing.T) {
	if _, err := newRecorder(t.TempDir(), 1<<20); err == nil || !strings.Contains(err.Error(), "--record: ") {
		t.Errorf("a folder as recording: %v", err)
	}
}

func TestRecorderBeginsANewLineAfterACutOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(path, []byte(`{"model":"m","decode_to`), 0o600); err != nil {
		t.Fatal(err)
	}
	record(t, path, 1<<20, &event.Request{ID: "after", Model: "m", EndNS: 11, DecodeRate: 3, Outcome: event.OutcomeOK})
	var out, errs strings.Builder
	run(t.Context(), []string{"replay", "--json", path}, &out, &errs)
	if !strings.Contains(out.String(), `"after"`) || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("%s %s", &errs, &out)
	}
}

// TestOneRecorderAFile: two exporters would put their lines into each other's.
func TestOneRecorderAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	first, err := newRecorder(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newRecorder(path, 1<<20); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("second recorder: %v", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	record(t, path, 1<<20)
}
