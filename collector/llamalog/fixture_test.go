package llamalog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grayfail/event"
)

// arrived is when every fixture is said to have come, unless a test says more.
const arrived = int64(1_796_040_100_000_000_000) // 2026-11-30T12:01:40Z

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fixtures lists every log of testdata.
func fixtures(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, dir := range []string{"llama.cpp-0.7.0-b11669", "composed"} {
		all, err := filepath.Glob(filepath.Join("testdata", dir, "*.log"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range all {
			names = append(names, strings.TrimPrefix(name, "testdata/"))
		}
	}
	if len(names) < 20 {
		t.Fatalf("%d fixtures only", len(names))
	}
	return names
}

// show writes what matters of a request on one line.
func show(r event.Request) string {
	id := r.ID[:max(0, strings.LastIndexByte(r.ID, '-'))] // without the time of the end
	conc := ""
	if r.Concurrency > 0 {
		conc = fmt.Sprintf(" of %.2f", r.Concurrency)
	}
	return fmt.Sprintf("%s %s %s prompt %d-%d at %.2f generated %d at %.2f%s",
		id, r.Model, r.Outcome, r.PromptTokens, r.CachedTokens, r.PrefillRate, r.GeneratedTokens, r.DecodeRate, conc)
}

// whole parses a log in one piece.
func whole(log []byte) ([]event.Request, Stats) {
	p := NewParser(Config{Name: "log"}, true)
	var all []event.Request
	all = append(all, p.Feed(log, arrived)...)
	all = append(all, p.Close(arrived)...)
	return all, p.Stats()
}
