package proxycost

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// TestMeasure runs everything once, small, and asserts no duration.
func TestMeasure(t *testing.T) {
	testkit.RequireRoot(t)
	binary := filepath.Join(t.TempDir(), "grayfail_exporter")
	if out, err := exec.Command("go", "build", "-o", binary, "grayfail/cmd/grayfail_exporter").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var log strings.Builder
	loads := []Load{{Streams: 1, Chunks: 20, Interval: time.Millisecond}, {Streams: 3, Chunks: 10, Interval: 2 * time.Millisecond}}
	result, err := Measure(t.Context(), Options{Binary: binary, Rounds: 2, Loads: loads, Idle: time.Millisecond, Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Rows) != 6 || strings.Count(log.String(), "\n") != 4 {
		t.Fatalf("%d rows, log:\n%s", len(result.Rows), &log)
	}
	for i, row := range result.Rows {
		way, load := []string{Direct, Nginx, Exporter}[i%3], loads[i/3]
		if row.Way != way || row.Load != load || row.Measured != 2*load.Streams*load.Chunks {
			t.Errorf("row %d: %+v, want %s under %+v", i, row, way, load)
		}
		if row.P50 <= 0 || row.P99 < row.P50 || way == Nginx && row.CPU <= 0 {
			t.Errorf("row %d: %+v", i, row)
		}
	}
}

// TestShortStream: an answer that ends early is no measurement.
func TestShortStream(t *testing.T) {
	e, err := newEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.chunks, e.interval = 3, time.Millisecond
	if took, err := e.run(t.Context(), e.address, 2); err != nil || len(took) != 6 {
		t.Fatalf("%d chunks, %v", len(took), err)
	}
	other, err := newEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.chunks, other.interval = 2, time.Millisecond
	if _, err := e.run(t.Context(), other.address, 1); err == nil || !strings.Contains(err.Error(), "2 of 3 chunks") {
		t.Errorf("a short stream: %v", err)
	}
}

func TestPage(t *testing.T) {
	load := Load{Streams: 32, Interval: 20 * time.Millisecond}
	row := func(way string, p99, cpu time.Duration) Row {
		return Row{Load: load, Way: way, P50: 50 * time.Microsecond, P99: p99, CPU: cpu, Measured: 9600}
	}
	for name, test := range map[string]struct {
		p99, cpu time.Duration
		want     []string
	}{
		"at the targets": {500 * time.Microsecond, 40 * time.Microsecond, []string{
			"| 32 | 50 | grayfail_exporter | 9600 | 50 µs | 500 µs | 40 µs |",
			"| 32 | p99 beyond nginx's | 200 µs | at most 200 µs | yes |", "| 32 | CPU for a chunk, times nginx's | 2.00 | at most 2 | yes |",
		}},
		"beyond them": {501 * time.Microsecond, 41 * time.Microsecond, []string{
			"| 32 | p99 beyond nginx's | 201 µs | at most 200 µs | no |", "| 32 | CPU for a chunk, times nginx's | 2.05 | at most 2 | no |",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			page := Result{Rows: []Row{
				row(Direct, 90*time.Microsecond, 0), row(Nginx, 300*time.Microsecond, 20*time.Microsecond), row(Exporter, test.p99, test.cpu),
			}}.Page("two cores")
			for _, line := range append(test.want, "| 32 | 50 | no proxy | 9600 | 50 µs | 90 µs | - |") {
				if !strings.Contains(page, line+"\n") {
					t.Errorf("no line %q in\n%s", line, page)
				}
			}
		})
	}
}
