package cost

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func curve(slope float64, sizes ...float64) Curve {
	c := Curve{Name: "c", Size: "legs", Unit: "ms"}
	for _, n := range sizes {
		c.Points = append(c.Points, Point{n, 3 * math.Pow(n, slope)})
	}
	return c
}

func TestGrowth(t *testing.T) {
	for _, slope := range []float64{0, 0.5, 1, 1.05, 1.2, 2} {
		c := curve(slope, 10, 100, 1000)
		g := c.Growth()
		if math.Abs(g.Slope-slope) > 1e-9 || math.Abs(g.Last-slope) > 1e-9 || g.Linear() != (slope <= linear) {
			t.Errorf("slope %v: %+v, linear %v", slope, g, g.Linear())
		}
	}
	// A fixed part hides growth among small sizes: the last step has it.
	hidden := Curve{Points: []Point{{1, 100}, {10, 100}, {100, 100}, {1000, 2000}}}
	if g := hidden.Growth(); g.Slope > linear || g.Linear() {
		t.Errorf("hidden: %+v, linear %v", g, g.Linear())
	}
	if one := curve(1, 10); one.Growth().Linear() {
		t.Error("one size has no growth to be called linear")
	}
}

const benchOutput = `goos: linux
pkg: grayfail/export
BenchmarkScrape/legs=16-2   	1	2000000 ns/op
BenchmarkScrape/legs=16-2   	1	4000000 ns/op
BenchmarkScrape/legs=16-2   	1	90000000 ns/op
BenchmarkScrape/legs=256-2  	1	64000000 ns/op	5 B/op
BenchmarkScrape/legs=1024-2 	1	256000000 ns/op
BenchmarkOther/two_sizes/legs=1-2	1	5 ns/op
BenchmarkOther/two_sizes/legs=2-2	1	5 ns/op
BenchmarkPlain-2	1	5 ns/op
pkg: grayfail/ebpf
BenchmarkCost/watched/tp_x-2	1	5 ns/op	50.0 ns/empty	180 ns/receive	345 ns/send
BenchmarkCost/watched_large/tp_x-2	1	5 ns/op	50.0 ns/empty	230 ns/receive	360 ns/send
BenchmarkCost/unwatched/tp_x-2	1	5 ns/op	50.0 ns/empty	58 ns/receive	75 ns/send
pkg: grayfail/collector/rdma/nldev
BenchmarkDecode/queue_pairs=100-2	1	100000 ns/op
BenchmarkDecode/queue_pairs=1000-2	1	1000000 ns/op
BenchmarkDecode/queue_pairs=10000-2	1	60000000 ns/op
`

func TestBench(t *testing.T) {
	curves, tables, targets, err := Bench(strings.NewReader(benchOutput))
	if err != nil || len(curves) != 2 || len(tables) != 1 || len(tables[0].Rows) != 3 {
		t.Fatalf("%+v %+v %v", curves, tables, err)
	}
	if c := curves[0]; c.Name != "export Scrape" || c.Size != "legs" || len(c.Points) != 3 || c.Points[0] != (Point{16, 2}) || math.Abs(c.Points[2].Y-256) > 1e-9 {
		t.Errorf("%+v", c)
	}
	met := map[string]bool{}
	for _, target := range targets {
		met[target.What] = target.Met
	}
	want := map[string]bool{
		"send hook, a watched event": false, "receive hook, a watched event": true, "either hook, an unwatched packet": true, "10,000 queue pairs decoded": false,
	}
	for what, is := range want {
		if got, there := met[what]; !there || got != is {
			t.Errorf("%s: met %v (there %v), want %v", what, got, there, is)
		}
	}
	if len(met) != len(want) {
		t.Errorf("%v", met)
	}
}

func TestBrokenBenchOutputIsAnError(t *testing.T) {
	if _, _, _, err := Bench(strings.NewReader("BenchmarkX\t1\tmany ns/op\n")); err == nil {
		t.Error("no error")
	}
}

func sections() []Section {
	return []Section{
		{ID: "qdisc", Title: "Qdiscs", Method: "How.", Curves: []Curve{curve(1, 10, 100), curve(2, 10, 100)},
			Targets: []Target{{What: "a", Aim: "1", Got: "2", Why: "because"}, {What: "b", Aim: "3", Got: "3", Met: true}}},
		{ID: "load", Title: "Load", Series: []Series{{Name: "s", Unit: "MB", Points: []Point{{0, 1}, {1, 2}}}},
			Tables: []Table{{Title: "T", Header: []string{"x", "y"}, Rows: [][]string{{"1", "2"}}}}},
	}
}

func TestReport(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, sections(), "plots", func(name string) bool { return name == "limits.md" }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| [a](#qdisc) | 1 | 2 | **no** |", "- **a**: because", "| [b](#qdisc) | 3 | 3 | yes |",
		"| 1.00 | 1.00 | yes |", "| 2.00 | 2.00 | **no** |", "| x | y |\n|---|---|\n| 1 | 2 |", "(plots/qdisc-legs-ms.svg)", "(plots/load-time-mb.svg)",
		"- [limits.md](limits.md): ",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}

func TestPagesThatAreNotThereAreNotLinked(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, nil, "plots", func(string) bool { return false }); err != nil || strings.Contains(b.String(), "limits.md") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// TestPutKeepsTheRest: a section measured anew takes the place of its
// predecessor; the others, and only plots still drawn, stay.
func TestPutKeepsTheRest(t *testing.T) {
	dir := t.TempDir()
	put := func(s Section) {
		r, err := Open(dir)
		if err == nil {
			err = r.Put(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all := sections()
	put(all[1])
	put(all[0])
	again := all[0]
	again.Title, again.Curves = "Qdiscs again", []Curve{{Name: "c", Size: "sockets", Unit: "ms", Points: []Point{{1, 1}, {2, 2}}}}
	put(again)
	text, err := os.ReadFile(filepath.Join(dir, page))
	if err != nil {
		t.Fatal(err)
	}
	first, second := strings.Index(string(text), "## Qdiscs again"), strings.Index(string(text), "## Load")
	if first < 0 || second < first || strings.Count(string(text), "## Qdiscs") != 1 {
		t.Errorf("%s", text)
	}
	for name, want := range map[string]bool{"qdisc-legs-ms.svg": false, "qdisc-sockets-ms.svg": true, "load-time-mb.svg": true} {
		data, err := os.ReadFile(filepath.Join(dir, folder, name))
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if want && !wellFormed(data) {
			t.Errorf("%s is no XML", name)
		}
	}
}

func wellFormed(data []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := d.Token(); err != nil {
			return errors.Is(err, io.EOF) && len(data) > 0
		}
	}
}

func TestForeignFiguresAreAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, folder, kept), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), kept) {
		t.Errorf("error %v does not name the file", err)
	}
}
