package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grayfail/event"
	"grayfail/lab"
	"grayfail/lab/trial"
)

// played is what a good run gives: at 5% every other request is at a quarter
// of the rate and blamed on rpc-b.
func played() []trial.Result {
	var all []trial.Result
	add := func(cond string, rate float64, row *event.Row) {
		all = append(all, trial.Result{Condition: cond, Answer: lab.Answer{Status: 200, Tokens: 32, DecodeSeconds: 32 / rate}, Row: row})
	}
	for i := range 30 {
		add(trial.WarmUpName, 210, &event.Row{Verdict: event.VerdictUnknown})
		add("0%", 200, &event.Row{Verdict: event.VerdictOK})
		add("1%", 180, &event.Row{Verdict: event.VerdictOK})
		if i%2 == 0 {
			add("5%", 50, &event.Row{Verdict: event.VerdictSlow, Leg: lab.LegB, ExcessMS: 480, LegsMS: map[string]float64{lab.LegA: 10, lab.LegB: 470}})
		} else {
			add("5%", 190, &event.Row{Verdict: event.VerdictOK})
		}
	}
	return all
}

// TestCheck spoils a good campaign in every way that matters.
func TestCheck(t *testing.T) {
	misses := func(results []trial.Result) (out []string) {
		for _, f := range (campaign{"0%", "5%", lab.LegB, results}).check() {
			if !f.ok {
				out = append(out, f.what)
			}
		}
		return out
	}
	if got := misses(played()); got != nil {
		t.Fatalf("a good campaign misses %q", got)
	}
	for name, c := range map[string]struct {
		spoil func(r *trial.Result)
		want  string
	}{
		"not 200":          {func(r *trial.Result) { r.Status = 500 }, "HTTP 200"},
		"unjudged":         {func(r *trial.Result) { r.Row = nil }, "judged"},
		"control slow":     {func(r *trial.Result) { r.Row = &event.Row{Verdict: event.VerdictSlow} }, "at 0% no request slow"},
		"missed":           {func(r *trial.Result) { r.DecodeSeconds *= 4 }, "found (1 missed)"},
		"wrong leg":        {func(r *trial.Result) { r.Row = &event.Row{Verdict: event.VerdictSlow, Leg: lab.LegA} }, "no other leg"},
		"invented on fine": {func(r *trial.Result) { r.Row = &event.Row{Verdict: event.VerdictSlow, Leg: lab.LegB} }, "none above 0.60 (1)"},
	} {
		all := played()
		c.spoil(&all[1]) // the first of 0%
		if got := strings.Join(misses(all), "; "); !strings.Contains(got, c.want) {
			t.Errorf("%s: misses %q, want one with %q", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		spoil func(row *event.Row)
		want  string
	}{
		"nothing found": {func(row *event.Row) { *row = event.Row{Verdict: event.VerdictOK} }, "at 5% at least 20%"},
		"no names":      {func(row *event.Row) { row.Leg = "" }, "without a name"},
		"small share":   {func(row *event.Row) { row.LegsMS[lab.LegB] = 100 }, "median share"},
	} {
		all := played()
		for i := range all {
			if all[i].Row.Verdict == event.VerdictSlow {
				c.spoil(all[i].Row)
			}
		}
		if got := strings.Join(misses(all), "; "); !strings.Contains(got, c.want) {
			t.Errorf("%s: misses %q, want one with %q", name, got, c.want)
		}
	}
}

// TestUnsteady: a machine that disturbs what nobody else did is told apart.
func TestUnsteady(t *testing.T) {
	unsteady := func(results []trial.Result) string { return campaign{"0%", "5%", lab.LegB, results}.unsteady() }
	if got := unsteady(played()); got != "" {
		t.Errorf("a good campaign: %q", got)
	}
	one, drift := played(), played()
	one[1].DecodeSeconds *= 2
	for i := range drift {
		if drift[i].Condition == trial.WarmUpName {
			drift[i].DecodeSeconds /= 2
		}
	}
	for name, all := range map[string][]trial.Result{"one slow control": one, "a slower machine": drift} {
		if unsteady(all) == "" {
			t.Errorf("%s: taken for steady", name)
		}
	}
}

func TestEngineLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine.log")
	write := func(lines ...string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	write("0.00.100.000 W old warning")
	marks, err := markLogs([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	write(
		"0.20.669.305 I slot get_availabl: id  0 | task -1 | selected slot by LCP similarity, f_sim_best = 1.000 (> 0.100 thold), f_keep = 0.537",
		"0.21.424.783 I slot print_timing: id  0 | task 990 | prompt eval time =      61.79 ms /    36 tokens (    1.72 ms per token,   582.66 tokens per second)",
		"0.21.424.841 I slot      release: id  0 | task 990 | stop processing: n_tokens = 67, truncated = 0",
		"Accepted client connection",
	)
	if lines, tell, err := marks.since(); err != nil || lines != 4 || tell != nil {
		t.Errorf("%d lines, %q, %v", lines, tell, err)
	}
	write("0.22.000.000 W something", "0.22.000.001 I srv: request timed out", "connection lost", "recv failed")
	if lines, tell, err := marks.since(); err != nil || lines != 8 || len(tell) != 4 {
		t.Errorf("%d lines, %q, %v", lines, tell, err)
	}
}
