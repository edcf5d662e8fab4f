package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	res := analysed(t, small(), read(t, "small/runs.jsonl"))
	want := []Line{
		{Condition: "none", Requests: 6, Measured: 6, Median: ptr(100.0), P10: ptr(90.0), Min: ptr(90.0), Max: ptr(110.0), LatencyMedian: ptr(0.6), LatencyP90: ptr(0.6)},
		{Condition: "loss-5", Requests: 6, Measured: 6, Median: ptr(55.0), P10: ptr(19.0), Min: ptr(19.0), Max: ptr(99.0), LatencyMedian: ptr(1.4), LatencyP90: ptr(3.6), Slow: 3},
		{Condition: "dead", Requests: 2, LatencyMedian: ptr(11.55), LatencyP90: ptr(20.0), Slow: 2, Failed: 2, Invalid: 3},
	}
	if diff := cmp.Diff(want, res.Table); diff != "" {
		t.Error(diff)
	}
	invalid := []Invalid{{"dead", []Count{{"interrupted", 1}, {"request canceled", 1}, {"the injector did not act: no packet was dropped", 1}}}}
	if diff := cmp.Diff(invalid, res.Invalid); diff != "" {
		t.Error(diff)
	}
	if res.Made != 17 {
		t.Errorf("%d made", res.Made)
	}
}

// Each rate by the control of its own block: 40/100, 99/110, 30/90, 84/105, 19/95, 70/100.
func TestNormalized(t *testing.T) {
	runs := read(t, "small/runs.jsonl")
	res := analysed(t, small(), runs)
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	want := []Normalized{
		{Condition: "none", N: 6, Median: ptr(1.0), P10: ptr(1.0), Min: ptr(1.0), Max: ptr(1.0)},
		{Condition: "loss-5", N: 6, Median: ptr(0.55), P10: ptr(0.2), Min: ptr(0.2), Max: ptr(0.9), Below: 3},
		{Condition: "dead"},
	}
	if diff := cmp.Diff(want, res.Normalized, near); diff != "" {
		t.Error(diff)
	}
	// A block without a valid control has no baseline: its runs are counted, not guessed.
	runs.Runs = slices.Clone(runs.Runs)
	for i := range runs.Runs {
		if r := &runs.Runs[i]; r.Condition == "none" && r.Block == 4 {
			r.Valid, r.InvalidReason = false, "interrupted"
		}
	}
	got := analysed(t, small(), runs).Normalized[1]
	if got.N != 5 || got.WithoutBlock != 1 || *got.Min < 0.3 {
		t.Errorf("%+v, want the 0.2 of block 4 to be without a baseline", got)
	}
}

// Of a latency the smaller is the better: 0.6 s of the control by 1.8 s are 1/3.
func TestLatencyIsNormalizedUpsideDown(t *testing.T) {
	m := small()
	m.Measure = Latency
	res := analysed(t, m, read(t, "small/runs.jsonl"))
	if got := res.Normalized[1]; got.N != 6 || math.Abs(*got.Min-0.6/3.6) > 1e-12 || math.Abs(*got.Max-0.6/0.7) > 1e-12 {
		t.Errorf("%+v", got)
	}
	if got := res.Table[1]; *got.P10 != 3.6 || *got.Median != 1.4 {
		t.Errorf("%+v, want the slow end", got)
	}
}

// Ranks of the normalized rates 3 6 2 5 1 4 and of the drop fractions 4 2 5 1 6
// 3: the squares of the differences sum to 68, rho = 1 - 6*68/(6*35).
func TestCriterion(t *testing.T) {
	runs := read(t, "small/runs.jsonl")
	rho := 1 - 6*68.0/(6*35)
	for _, c := range []struct {
		name string
		c    Criterion
		want Result
		why  string
		n    int
	}{
		{"met", Criterion{"loss-5", DropFraction, "<=", -0.40, 0}, Met, "", 6},
		{"not met", Criterion{"loss-5", DropFraction, "<=", -0.95, 0}, NotMet, "", 6},
		{"not met upwards", Criterion{"loss-5", DropFraction, ">=", -0.40, 0}, NotMet, "", 6},
		{"met upwards", Criterion{"loss-5", DropFraction, ">=", -0.95, 0}, Met, "", 6},
		{"too few", Criterion{"loss-5", DropFraction, "<=", -0.40, 20}, NotJudged, "too few: 6 requests with both, at least 20 are needed", 6},
		{"none with both", Criterion{"dead", DropFraction, "<=", -0.40, 0}, NotJudged, "too few: 0 requests", 0},
		{"nothing varies", Criterion{"none", Retransmits, "<=", -0.40, 0}, NotJudged, "retransmits or the rate is the same in all 6 requests", 6},
	} {
		m := small()
		m.Criteria = []Criterion{c.c}
		j := analysed(t, m, runs).Criteria[0]
		if j.Result != c.want || !strings.Contains(j.Why, c.why) || j.N != c.n || (c.why == "") != (j.Why == "") {
			t.Errorf("%s: %+v", c.name, j)
		}
		if c.want != NotJudged && (math.Abs(j.Found.Rho-rho) > 1e-12 || j.Found.P < 0.005 || j.Found.P > 0.05) {
			t.Errorf("%s: %+v, want rho %v", c.name, j.Found, rho)
		}
	}
	m := small()
	m.Control = ""
	res := analysed(t, m, runs)
	if j := res.Criteria[0]; j.Result != NotJudged || !strings.Contains(j.Why, "no control") || len(res.Normalized) != 0 {
		t.Errorf("without a control: %+v", j)
	}
}

func TestTimeoutsAndNames(t *testing.T) {
	res := analysed(t, small(), read(t, "small/runs.jsonl"))
	wantTimeouts := []Timeouts{
		{Condition: "none", Fast: Split{Without: 6}},
		{Condition: "loss-5", Slow: Split{With: 2, Without: 1}, Fast: Split{With: 1, Without: 2}},
		{Condition: "dead", Failed: Split{With: 1, Unknown: 1}},
	}
	if diff := cmp.Diff(wantTimeouts, res.Timeouts); diff != "" {
		t.Error(diff)
	}
	wantNaming := []Naming{
		{"none", 0, []Count{}, []Count{}},
		{"loss-5", 3, []Count{{"rpc-b", 2}, {"", 1}}, []Count{{"loss", 2}, {"unattributed", 1}}},
		{"dead", 2, []Count{{"rpc-b", 2}}, []Count{{"dead_path", 2}}},
	}
	if diff := cmp.Diff(wantNaming, res.Naming); diff != "" {
		t.Error(diff)
	}
}

func TestUnusableMethod(t *testing.T) {
	runs := read(t, "small/runs.jsonl")
	for want, change := range map[string]func(*Method){
		"spec_hash: missing": func(m *Method) { m.SpecHash = "" },
		"run 1 is of the specification sha256:1f0c, not x": func(m *Method) { m.SpecHash = "x" },
		`measure: "speed", want one of`:                    func(m *Method) { m.Measure = "speed" },
		"slow_below: 1, want":                              func(m *Method) { m.SlowBelow = 1 },
		"slow_below: NaN, want":                            func(m *Method) { m.SlowBelow = math.NaN() },
		`control: "x" is not a condition`:                  func(m *Method) { m.Control = "x" },
		`conditions: "none" is there twice`:                func(m *Method) { m.Conditions = append(m.Conditions, "none") },
		`criteria 0: condition: "x" is not one`:            func(m *Method) { m.Criteria[0].Condition = "x" },
		`criteria 0: evidence: "luck", want one of`:        func(m *Method) { m.Criteria[0].Evidence = "luck" },
		`criteria 0: op: "<", want <= or >=`:               func(m *Method) { m.Criteria[0].Op = "<" },
		"criteria 0: rho: -2 is not between -1 and 1":      func(m *Method) { m.Criteria[0].Rho = -2 },
	} {
		m := small()
		change(&m)
		if _, err := Analyse(m, runs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A condition that the method does not know is reported all the same, and one
// without any run is too.
func TestConditionsOfBothSides(t *testing.T) {
	m := small()
	m.Conditions, m.Criteria = []string{"none", "loss-10"}, nil
	res := analysed(t, m, read(t, "small/runs.jsonl"))
	var names []string
	for _, l := range res.Table {
		names = append(names, l.Condition)
	}
	if want := []string{"none", "loss-10", "loss-5", "dead"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	if len(m.Conditions) != 2 {
		t.Errorf("the caller's method was changed: %v", m.Conditions)
	}
	if l := res.Table[1]; l.Requests != 0 || l.Median != nil {
		t.Errorf("%+v of no run", l)
	}
}

func TestSummary(t *testing.T) {
	golden(t, "small/summary.txt", []byte(analysed(t, small(), read(t, "small/runs.jsonl")).Summary()))
}
