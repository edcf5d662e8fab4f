package httploss

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/event"
	"grayfail/internal/testkit"
)

// TestMeasure plays every cell once. Only what no machine's speed can change is
// asserted: what arrived, what was counted, that nothing was faster than light.
func TestMeasure(t *testing.T) {
	testkit.RequireRoot(t)
	binary := filepath.Join(t.TempDir(), "grayfail_exporter")
	testkit.Run(t, "go", "build", "-o", binary, "grayfail/cmd/grayfail_exporter")
	var log strings.Builder
	cells, err := Measure(t.Context(), Options{Binary: binary, Sizes: []int{1000, 50_000}, Loss: []float64{0, 20}, Blocks: 1, Requests: 2, Seed: 1, Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	if len(cells) != 4 || !strings.Contains(log.String(), "block 1 of 1") {
		t.Fatalf("%d cells, log %q", len(cells), &log)
	}
	for _, c := range cells {
		if len(c.Took) != 2 || c.Counted != 2 || quantile(c.Took, 0) < 2*RTT || len(c.Kept) != 2 || quantile(c.Kept, 0) < RTT || c.stage(event.HTTPStageConnect) < RTT {
			t.Errorf("%+v", c)
		}
		if (c.Loss > 0) != (c.Packets > 0) || c.Loss > 0 && c.Size > 1000 && c.Dropped == 0 {
			t.Errorf("%d bytes at %g%%: %d of %d packets dropped", c.Size, c.Loss, c.Dropped, c.Packets)
		}
	}
}

func TestPage(t *testing.T) {
	cell := func(loss float64, read, took time.Duration) *Cell {
		return &Cell{Size: 227_000, Loss: loss, Took: []time.Duration{took, took, 2 * took}, Kept: []time.Duration{took / 2, took / 2, took / 2}, Counted: 3, Dropped: uint64(loss), Packets: uint64(100 * loss),
			Stages: map[event.HTTPStage]time.Duration{event.HTTPStageRead: 3 * read, event.HTTPStageFirstByte: 30 * time.Millisecond}}
	}
	page := Page([]*Cell{cell(0, 5*time.Millisecond, 40*time.Millisecond), cell(2, 95*time.Millisecond, 120*time.Millisecond)}, "Machine: any")
	for _, want := range []string{
		"| 227 kB | 0% | - | 3 | 40.0 ms | 80.0 ms | 1.0 | - | 20.0 ms | 20.0 ms | 1.0 |",
		"| 227 kB | 2% | 2 of 200 packets | 3 | 120.0 ms | 240.0 ms | 3.0 | read, by 90.0 ms | 60.0 ms | 60.0 ms | 3.0 |",
		"10 ms of round-trip time", "100 Mbit/s", "at 1% most of its calls",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, size := range []int{200, 1000, 227_000} {
		if body, err := completion(size); err != nil || len(body) != size {
			t.Errorf("%d bytes of %d, %v", len(body), size, err)
		}
	}
	if _, err := completion(10); err == nil {
		t.Error("an answer of 10 bytes")
	}
}
