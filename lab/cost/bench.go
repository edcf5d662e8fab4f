package cost

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// benchmark is one benchmark's figures over its repetitions.
type benchmark struct {
	pkg, name string // "grayfail/export", "Scrape/legs=16"
	values    map[string][]float64
}

// median of a unit; false where it was not reported.
func (b *benchmark) median(unit string) (float64, bool) {
	v := slices.Sorted(slices.Values(b.values[unit]))
	if len(v) == 0 {
		return 0, false
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2, true
}

// least of a unit: what else runs on the machine only adds. Growth is judged by
// it, since work of others that came and went would tilt a curve.
func (b *benchmark) least(unit string) (float64, bool) {
	if len(b.values[unit]) == 0 {
		return 0, false
	}
	return slices.Min(b.values[unit]), true
}

// nanoseconds of a unit ns/WHAT, which benchfmt reads as seconds.
func (b *benchmark) nanoseconds(what string) (float64, bool) {
	v, ok := b.median("sec/" + what)
	return v * 1e9, ok
}

// sizeOf finds the last part of a name that is KEY=NUMBER: its size.
var sizeOf = regexp.MustCompile(`/([a-z_]+)=([0-9]+)(/|$)`)

const minSizes = 3 // of a curve

// Bench reads the output of go test -bench. Benchmarks whose name has a part
// KEY=NUMBER make curves; the hooks' and the queue pairs' are held against the
// contract.
func Bench(r io.Reader) (curves []Curve, tables []Table, targets []Target, err error) {
	all, err := readBench(r)
	if err != nil {
		return nil, nil, nil, err
	}
	curves = benchCurves(all)
	if t, aims := hooks(all); len(t.Rows) > 0 {
		tables, targets = append(tables, t), append(targets, aims...)
	}
	return curves, tables, append(targets, queuePairs(curves)...), nil
}

func readBench(r io.Reader) (all []*benchmark, err error) {
	known := map[string]*benchmark{}
	reader := benchfmt.NewReader(r, "bench")
	for reader.Scan() {
		switch result := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, result
		case *benchfmt.Result:
			name := string(result.Name.Full())
			if i := strings.LastIndexByte(name, '-'); i > 0 { // GOMAXPROCS
				name = name[:i]
			}
			pkg := result.GetConfig("pkg")
			b := known[pkg+" "+name]
			if b == nil {
				b = &benchmark{pkg, name, map[string][]float64{}}
				known[pkg+" "+name] = b
				all = append(all, b)
			}
			for _, v := range result.Values {
				b.values[v.Unit] = append(b.values[v.Unit], v.Value)
			}
		}
	}
	return all, reader.Err()
}

func benchCurves(all []*benchmark) (curves []Curve) {
	index := map[string]int{}
	for _, b := range all {
		parts := sizeOf.FindAllStringSubmatchIndex(b.name, -1)
		seconds, measured := b.least("sec/op")
		if len(parts) == 0 || !measured {
			continue
		}
		at := parts[len(parts)-1]
		key, rest := b.name[at[2]:at[3]], b.name[:at[0]]+strings.TrimSuffix("/"+b.name[at[6]:], "/")
		n, err := strconv.ParseFloat(b.name[at[4]:at[5]], 64)
		if err != nil {
			continue // more digits than a number has
		}
		name := path.Base(b.pkg) + " " + strings.ReplaceAll(rest, "_", " ")
		i, known := index[name+key]
		if !known {
			i = len(curves)
			index[name+key] = i
			curves = append(curves, Curve{Name: name, Size: strings.ReplaceAll(key, "_", " "), Unit: "ms"})
		}
		curves[i].Points = append(curves[i].Points, Point{n, seconds * 1e3})
	}
	return slices.DeleteFunc(curves, func(c Curve) bool { return len(c.Points) < minSizes })
}

// Aims of the contract for one run of a hook, in nanoseconds above an empty
// program.
const (
	aimSend, aimReceive, aimUnwatched = 300, 200, 30
)

func hooks(all []*benchmark) (Table, []Target) {
	t := Table{
		Title:  "BPF: one run of a hook, ns",
		Header: []string{"traffic, send hook", "send", "receive", "an empty program", "send, above it", "receive, above it"},
	}
	var worst [3]hookWorst // send, receive, unwatched
	for _, b := range all {
		traffic, ok := strings.CutPrefix(b.name, "Cost/")
		send, sent := b.nanoseconds("send")
		receive, received := b.nanoseconds("receive")
		empty, measured := b.nanoseconds("empty")
		if !ok || !sent || !received || !measured {
			continue
		}
		t.Rows = append(t.Rows, []string{
			strings.ReplaceAll(traffic, "_", " "), fmt.Sprintf("%.0f", send), fmt.Sprintf("%.0f", receive), fmt.Sprintf("%.0f", empty),
			fmt.Sprintf("%.0f", send-empty), fmt.Sprintf("%.0f", receive-empty),
		})
		kind := t.Rows[len(t.Rows)-1][0]
		if strings.HasPrefix(traffic, "unwatched") {
			worst[2].take(max(send, receive)-empty, kind)
			continue
		}
		worst[0].take(send-empty, kind)
		worst[1].take(receive-empty, kind)
	}
	if len(t.Rows) == 0 {
		return t, nil
	}
	return t, []Target{
		hookTarget("send hook, a watched event", aimSend, worst[0]),
		hookTarget("receive hook, a watched event", aimReceive, worst[1]),
		hookTarget("either hook, an unwatched packet", aimUnwatched, worst[2]),
	}
}

// hookWorst is the largest figure of all kinds of traffic.
type hookWorst struct {
	ns   float64
	kind string
}

func (w *hookWorst) take(ns float64, kind string) {
	if ns > w.ns {
		*w = hookWorst{ns, kind}
	}
}

func hookTarget(what string, aim float64, worst hookWorst) Target {
	t := Target{
		What: what, Aim: fmt.Sprintf("at most %.0f ns", aim), Met: worst.ns <= aim,
		Got: fmt.Sprintf("%.0f ns above an empty program, the worst (%s)", worst.ns, worst.kind),
	}
	if !t.Met {
		t.Why = fmt.Sprintf("%s is beyond it; the table has the other kinds. tcp_sendmsg_locked is the hook of kernels from 6.15, sock_send_length that of 6.3 to 6.14", worst.kind)
	}
	return t
}

func queuePairs(curves []Curve) []Target {
	const size, aimMillis = 10_000, 50
	for _, c := range curves {
		for _, p := range c.Points {
			if c.Size == "queue pairs" && p.X == size {
				return []Target{{
					What: "10,000 queue pairs decoded", Aim: fmt.Sprintf("less than %d ms", aimMillis), Got: fmt.Sprintf("%.1f ms", p.Y),
					Met: p.Y < aimMillis, Why: "see the plot",
				}}
			}
		}
	}
	return nil
}
