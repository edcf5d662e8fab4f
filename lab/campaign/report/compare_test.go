package report

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// slower returns the runs with every figure of a condition at half.
func slower(runs Runs, condition string) Runs {
	runs.Runs = slices.Clone(runs.Runs)
	for i := range runs.Runs {
		r := &runs.Runs[i]
		if r.Condition == condition && r.Request != nil && r.Request.Decode != nil {
			q := *r.Request
			q.Decode = ptr(*q.Decode / 2)
			r.Request = &q
		}
	}
	return runs
}

func TestCompare(t *testing.T) {
	runs := read(t, "small/runs.jsonl")
	a := analysed(t, small(), runs)
	m := small()
	m.Name = "later"
	b := analysed(t, m, slower(runs, "none"))
	c, err := Compare(a, b)
	if err != nil || len(c.Conditions) != 3 || len(c.OnlyA)+len(c.OnlyB) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	// The control went from 90..110 to 45..55: no pair is in the other order, and
	// of the 924 ways to divide 12 values two are as extreme.
	none := c.Conditions[0]
	if none.Normalized != nil || none.Measured.Test.U != 0 || math.Abs(none.Measured.Test.P-2/924.0*1) > 1e-9 {
		t.Errorf("%+v", none.Measured)
	}
	if s := none.Measured.Shift; s.Estimate != -50 || s.Low == nil || *s.High >= 0 {
		t.Errorf("%+v, want -50 and an interval below 0", s)
	}
	// The lossy condition did not change, but it is twice as good by its control.
	loss := c.Conditions[1]
	if loss.Measured.Shift.Estimate != 0 || loss.Measured.Test.P != 1 {
		t.Errorf("%+v, want no change", loss.Measured)
	}
	if loss.Normalized.Shift.Estimate <= 0.3 {
		t.Errorf("%+v, want a shift up", loss.Normalized)
	}
	if dead := c.Conditions[2]; dead.Measured != nil || dead.A.Failed != 2 {
		t.Errorf("%+v, want no figures", dead)
	}
	golden(t, "small/compare.md", c.Markdown())
}

// A real engine's two generations under the same loss.
func TestCompareRecorded(t *testing.T) {
	results := func(name string) *Results {
		runs, err := Read(bytes.NewReader(recorded(t, name)))
		if err != nil {
			t.Fatal(err)
		}
		return analysed(t, recordedMethod(name), runs)
	}
	c, err := Compare(results("loss5_fromB"), results("v070_loss5_fromB"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "recorded/compare.md", c.Markdown())
}

func TestCannotCompare(t *testing.T) {
	runs := read(t, "small/runs.jsonl")
	a := analysed(t, small(), runs)
	m := small()
	m.Measure = Latency
	if _, err := Compare(a, analysed(t, m, runs)); err == nil || !strings.Contains(err.Error(), "one campaign measures decode_tokens_per_second, the other latency_seconds") {
		t.Error(err)
	}
	other := Method{SpecHash: "x", Conditions: []string{"calm"}}
	if _, err := Compare(a, analysed(t, other, Runs{})); err == nil || !strings.Contains(err.Error(), "no condition is in both") {
		t.Error(err)
	}
	some := Method{SpecHash: "x", Conditions: []string{"calm", "dead"}}
	c, err := Compare(a, analysed(t, some, Runs{}))
	if err != nil || !slices.Equal(c.OnlyA, []string{"none", "loss-5"}) || !slices.Equal(c.OnlyB, []string{"calm"}) {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := json.Marshal(c); err != nil {
		t.Error(err)
	}
	if text := string(c.Markdown()); !strings.Contains(text, "calm: only in B") {
		t.Error(text)
	}
}
