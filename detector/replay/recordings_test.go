package replay_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/detector"
	"grayfail/detector/replay"
	"grayfail/event"
)

// recordings are real requests of a real llama.cpp RPC engine under real
// faults, and what is true of them.
var recordings = []struct {
	file string
	slow int // decode
	// cause and leg of every slow request; several causes where the recording
	// cannot tell them apart.
	causes []event.Cause
	leg    string
	// shareMin is the least part of the excess on the leg (or on none for
	// cause local) in the median.
	shareMin float64
	detail   string
}{
	{file: "noise"},
	{file: "c1to2"}, // 0.45 of the single rate by design
	{file: "loss5_fromB", slow: 9, causes: []event.Cause{event.CauseLoss}, leg: "rpc-b", shareMin: 0.9},
	{file: "loss1_fromB", slow: 1, causes: []event.Cause{event.CauseCommon, event.CauseUnattributed}},
	{file: "delay50B", slow: 20, causes: []event.Cause{event.CauseDelay}, leg: "rpc-b", shareMin: 0.9},
	{file: "slowB_quota15", slow: 20, causes: []event.Cause{event.CausePeerHost}, leg: "rpc-b", shareMin: 0.8},
	{file: "slowC_quota3", slow: 20, causes: []event.Cause{event.CauseLocal}, shareMin: 0.9},
	{file: "conc2_lossB", slow: 16, causes: []event.Cause{event.CauseLoss}, leg: "rpc-b", shareMin: 0.8},
	{file: "v070_loss5_fromB", slow: 11, causes: []event.Cause{event.CauseLoss}, leg: "rpc-b", shareMin: 0.9},
	{file: "tbf20_1mb", slow: 10, causes: []event.Cause{event.CauseDelay}, leg: "rpc-b", shareMin: 0.9, detail: "rate_limit"},
}

func TestRecordings(t *testing.T) {
	for _, want := range recordings {
		t.Run(want.file, func(t *testing.T) {
			res := run(t, load(t, want.file))
			if res.BadLines != 0 {
				t.Errorf("bad lines: %v", res.Bad)
			}
			var shares []float64
			slow := 0
			for _, row := range res.Requests {
				checkRow(t, row)
				if row.Verdict != event.VerdictSlow {
					continue
				}
				if row.Phase != event.PhaseDecode {
					t.Errorf("%s: slow prefill of a prompt that is too short", row.ID)
					continue
				}
				slow++
				ok := row.Leg == want.leg && strings.HasPrefix(row.Detail, want.detail)
				named := false
				for _, c := range want.causes {
					named = named || row.Cause == c
				}
				if !ok || !named {
					t.Errorf("%s: %s %q (%s), want %v %q", row.ID, row.Cause, row.Leg, row.Detail, want.causes, want.leg)
				}
				part := row.LocalMS
				if want.leg != "" {
					part = row.LegsMS[want.leg]
				}
				shares = append(shares, part/row.ExcessMS)
			}
			if slow != want.slow {
				t.Errorf("%d slow requests, want %d", slow, want.slow)
			}
			if want.shareMin > 0 && median(shares) < want.shareMin {
				t.Errorf("median share %.2f, want at least %.2f", median(shares), want.shareMin)
			}
			if want.slow >= 3 && (len(res.Episodes) != 1 || res.Episodes[0].Cause != want.causes[0] || res.Episodes[0].Leg != want.leg ||
				res.Episodes[0].Slow != want.slow) {
				t.Errorf("episodes %+v, want one of %v %s with %d slow", res.Episodes, want.causes, want.leg, want.slow)
			}
			if want.slow < 3 && len(res.Episodes) != 0 {
				t.Errorf("episodes %+v, want none", res.Episodes)
			}
		})
	}
}

// One host's view must do: the same answers without what the workers saw.
func TestRecordingsWithoutWorkers(t *testing.T) {
	stripped := 0
	for _, rec := range recordings {
		lines := load(t, rec.file)
		var own []string
		for _, line := range lines {
			if strings.Contains(line, `"side":"worker"`) {
				stripped++
				continue
			}
			own = append(own, line)
		}
		if diff := cmp.Diff(run(t, lines), run(t, own), ignoreCounts); diff != "" {
			t.Errorf("%s: the answers depend on the workers' events:\n%s", rec.file, diff)
		}
	}
	if stripped < 1000 {
		t.Errorf("only %d worker lines in the recordings", stripped)
	}
}

// The detector never reads the condition.
func TestConditionIsNotRead(t *testing.T) {
	lines := load(t, "loss5_fromB")
	var blind []string
	for _, line := range lines {
		line = strings.ReplaceAll(line, `"condition":"baseline"`, `"condition":"x"`)
		blind = append(blind, strings.ReplaceAll(line, `"condition":"loss5_replies_of_b"`, `"condition":"x"`))
	}
	a, b := run(t, lines), run(t, blind)
	for i := range b.Requests {
		if b.Requests[i].Condition != "x" {
			t.Fatal("the condition was not replaced")
		}
		b.Requests[i].Condition = a.Requests[i].Condition
	}
	if diff := cmp.Diff(a.Requests, b.Requests); diff != "" {
		t.Error(diff)
	}
}

// checkRow holds every row to the contract.
func checkRow(t *testing.T, row event.Row) {
	t.Helper()
	sum := row.LocalMS
	for _, ms := range row.LegsMS {
		sum += ms
	}
	if math.Abs(sum-row.ExcessMS) > 1e-9 {
		t.Errorf("%s: legs + local = %v, excess %v", row.ID, sum, row.ExcessMS)
	}
	if row.LegsMS == nil {
		t.Errorf("%s: legs_ms is null", row.ID)
	}
	if row.Verdict != event.VerdictSlow && (row.Cause != event.CauseNone || row.Leg != "" || row.ExcessMS != 0 || len(row.LegsMS) != 0) {
		t.Errorf("%s: %s, but with cause %q leg %q excess %v", row.ID, row.Verdict, row.Cause, row.Leg, row.ExcessMS)
	}
	if row.Verdict == event.VerdictSlow && (row.Cause == event.CauseNone || row.Detail == "") {
		t.Errorf("%s: slow without cause or detail", row.ID)
	}
	if row.Cause.NamesPath() != (row.Leg != "") {
		t.Errorf("%s: cause %q with leg %q", row.ID, row.Cause, row.Leg)
	}
	if row.Verdict == event.VerdictOK && row.R == nil {
		t.Errorf("%s: ok without a baseline", row.ID)
	}
}

var ignoreCounts = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Records" }, cmp.Ignore())

// load returns the lines of a recording.
func load(t testing.TB, name string) []string {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("..", "testdata", "recordings", name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func run(t testing.TB, lines []string) replay.Result {
	t.Helper()
	res, err := replay.Run(detector.DefaultConfig(), input("test", strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func input(name, text string) replay.Input {
	return replay.Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	sorted := append([]float64(nil), x...)
	for i := range sorted {
		for j := i; j > 0 && sorted[j] < sorted[j-1]; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	return sorted[len(sorted)/2]
}
