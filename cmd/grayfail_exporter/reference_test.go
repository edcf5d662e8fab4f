package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"grayfail/export"
)

var update = flag.Bool("update", false, "write what tests keep under docs/")

// TestMetricsReference keeps docs/metrics.md what the code exports.
func TestMetricsReference(t *testing.T) {
	const path = "../../docs/metrics.md"
	want := metricsReference()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from what the code exports: go test ./cmd/grayfail_exporter -run TestMetricsReference -update", path)
	}
}

func metricsReference() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nMade from the code; a test fails when it differs. Times are seconds, sizes bytes, rates tokens per second. " +
		"A series that is not there means that nothing is known, never zero. Beside these: Go's and the process's own.\n\n" +
		"With `--metrics.strata` every `grayfail_baseline_*` series carries the label `concurrency`, and all strata are exported.\n\n" +
		"| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range export.Descriptions(false) {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, labelList(d.Labels), strings.ReplaceAll(d.Help, "|", "\\|"))
	}
	return b.String()
}

func labelList(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return "`" + strings.Join(labels, "`, `") + "`"
}
