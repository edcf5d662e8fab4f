package trial

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"grayfail/event"
	"grayfail/lab"
)

func TestOrder(t *testing.T) {
	p := Plan{Blocks: 10, Seed: 1, Conditions: []Condition{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	names := func(p Plan) (all []string) {
		for _, block := range p.order() {
			s := ""
			for _, c := range block {
				s += c.Name
			}
			all = append(all, s)
		}
		return all
	}
	first := names(p)
	if again := names(p); fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("one seed, two orders: %v, %v", first, again)
	}
	distinct := map[string]bool{}
	for _, block := range first {
		distinct[block] = true
		if len(block) != 3 || !strings.Contains(block, "a") || !strings.Contains(block, "b") || !strings.Contains(block, "c") {
			t.Errorf("block %q", block)
		}
	}
	if len(distinct) < 2 {
		t.Errorf("not shuffled: %v", first)
	}
	p.Seed = 2
	if fmt.Sprint(names(p)) == fmt.Sprint(first) {
		t.Error("another seed gave the same order")
	}
	p.InOrder = true
	if got := names(p)[3]; got != "abc" {
		t.Errorf("in order: %q", got)
	}
}

func result(cond string, at, latency time.Duration, rate float64, verdict event.Verdict, leg string) Result {
	start := time.Unix(1000, 0).Add(at)
	r := Result{Condition: cond, Answer: lab.Answer{Start: start, End: start.Add(latency), Status: 200, Tokens: 32, DecodeSeconds: 32 / rate}}
	if verdict != "" {
		r.Row = &event.Row{Verdict: verdict, Leg: leg}
	}
	return r
}

func TestSummarise(t *testing.T) {
	var all []Result
	for i := range 10 {
		all = append(all, result("5%", 0, time.Duration(i+1)*time.Second, float64(10*(i+1)), event.VerdictOK, ""))
	}
	all[0].Row = &event.Row{Verdict: event.VerdictSlow, Leg: "rpc-b"}
	all[1].Row = &event.Row{Verdict: event.VerdictSlow}
	all[2].Row = nil
	all[9].Status, all[9].Err = 500, fmt.Errorf("no")
	got := Summarise(append(all, result("0%", 0, time.Second, 7, event.VerdictOK, "")), []string{"0%", "5%"})
	want := Line{Condition: "5%", Requests: 10, Median: 50, P10: 10, Min: 10, Max: 90, LatencyMedian: 5500 * time.Millisecond,
		LatencyP90: 9 * time.Second, Slow: 2, Named: 1, Unknown: 1, Failed: 1, OK200: 9}
	if len(got) != 2 || got[0].Requests != 1 || got[0].Median != 7 || got[1] != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	var out bytes.Buffer
	if err := WriteTable(&out, got); err != nil || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("table %v:\n%s", err, out.String())
	}
	if got := Summarise(nil, []string{"x"}); got[0].Requests != 0 || got[0].Median != 0 {
		t.Errorf("nothing: %+v", got)
	}
}

func TestJoin(t *testing.T) {
	results := []Result{
		result("c", 0, time.Second, 1, "", ""),
		result("c", time.Second+time.Millisecond, time.Second, 1, "", ""),
		result("c", 5*time.Second, time.Second, 1, "", ""),
	}
	at := func(d time.Duration) int64 { return time.Unix(1000, 0).Add(d).UnixNano() }
	rows := []event.Row{
		{ID: "first", StartNS: at(time.Second / 2), EndNS: at(time.Second + 5*time.Millisecond)},
		{ID: "second", EndNS: at(1900 * time.Millisecond)},
		{ID: "other", StartNS: at(2500 * time.Millisecond), EndNS: at(3 * time.Second)},
	}
	Join(results, rows)
	for i, want := range []string{"first", "second", ""} {
		got := ""
		if results[i].Row != nil {
			got = results[i].Row.ID
		}
		if got != want {
			t.Errorf("result %d: row %q, want %q", i, got, want)
		}
	}
}

func TestLabel(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	acts := []Act{{Condition: "baseline", From: at(10), To: at(20)}, {Condition: "loss", From: at(21), To: at(30)}}
	line := func(second int64) string {
		return fmt.Sprintf(`{"type":"request","id":"r","model":"m","start_ns":%d,"prompt_tokens":0,"cached_tokens":0,"generated_tokens":32,"decode_tokens_per_second":9.5,"outcome":"ok"}`, at(second).UnixNano())
	}
	exchange := `{"type":"exchange","time_ns":15000000000,"leg":"rpc-b","extra":[1,  2]}`
	in := strings.Join([]string{line(5), line(12), exchange, line(25)}, "\n") + "\n"
	var out bytes.Buffer
	n, err := Label(&out, strings.NewReader(in), acts)
	if err != nil || n != 3 {
		t.Fatalf("%d requests, %v", n, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"", `"condition":"baseline"`, "", `"condition":"loss"`} {
		if want != "" && !strings.Contains(lines[i], want) || want == "" && strings.Contains(lines[i], "condition") {
			t.Errorf("line %d: %s, want %q", i, lines[i], want)
		}
	}
	if lines[2] != exchange {
		t.Errorf("an exchange was changed: %s", lines[2])
	}
	if _, err := Label(&out, strings.NewReader("{}\nnonsense\n"), acts); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("bad line: %v", err)
	}
}

func TestScenarioNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Scenarios() {
		if seen[s.Name] {
			t.Errorf("two scenarios are called %s", s.Name)
		}
		seen[s.Name] = true
		switch s.Truth {
		case lab.LegA, lab.LegB, "both legs", "local", "nothing":
		default:
			t.Errorf("%s: truth %q", s.Name, s.Truth)
		}
	}
}

func TestScore(t *testing.T) {
	row := func(r Result, excess float64, legs map[string]float64) Result {
		r.Row.ExcessMS, r.Row.LegsMS = excess, legs
		return r
	}
	results := []Result{
		result("c", 0, time.Second, 200, event.VerdictOK, ""),
		result("c", 0, time.Second, 80, event.VerdictOK, ""), // missed
		result("c", 0, time.Second, 92, event.VerdictOK, ""), // either way
		result("c", 0, time.Second, 92, event.VerdictSlow, ""),
		result("c", 0, time.Second, 150, event.VerdictSlow, ""), // invented
		row(result("c", 0, time.Second, 50, event.VerdictSlow, lab.LegB), 100, map[string]float64{lab.LegB: 90}),
		row(result("c", 0, time.Second, 50, event.VerdictSlow, lab.LegA), 100, map[string]float64{lab.LegA: 60}),
		result("c", 0, time.Second, 50, event.VerdictUnknown, ""),
		result("c", 0, time.Second, 50, "", ""),
	}
	results[8].Status = 502
	got := ScoreOf(results, Usual{Low: 190, High: 210}, lab.LegB)
	want := Score{Requests: 9, Failed: 1, Unjudged: 2, Slow: 4, Missed: 1, Invented: 1, Right: 1, Wrong: 1, Abstained: 2, Shares: []float64{0.6, 0.9}}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if n := len(Of(results, "other")); n != 0 {
		t.Errorf("%d results of a condition that was not played", n)
	}
}
