package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"grayfail/event"
)

// logTo returns a Log whose clock stands still unless it is moved.
func logTo(buf *bytes.Buffer) (*Log, *time.Time) {
	now := time.Unix(1_800_000_000, 0)
	l := NewLog(zerolog.New(buf))
	l.now = func() time.Time { return now }
	return l, &now
}

func linesOf(t *testing.T, buf *bytes.Buffer) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(buf.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, fields)
	}
	buf.Reset()
	return out
}

func TestVerdictTransitions(t *testing.T) {
	var buf bytes.Buffer
	l, _ := logTo(&buf)
	slow, ok, unknown := slowRow(), okRow(), event.Row{Source: "main", Model: "qwen", Phase: event.PhaseDecode, Verdict: event.VerdictUnknown}
	otherPhase := slowRow()
	otherPhase.Phase = event.PhasePrefill
	const slowText = "slow: rpc-b ate 1.38 s of 1.39 s (loss: 11 out-of-order segments)"
	for i, step := range []struct {
		row   event.Row
		level string // "" means no line
		text  string
	}{
		{unknown, "", ""},
		{ok, "", ""},
		{slow, "warn", slowText},
		{slow, "info", slowText},
		{unknown, "", ""}, // says nothing about being well again
		{slow, "info", slowText},
		{otherPhase, "warn", slowText}, // a state of its own
		{ok, "warn", "ok again: 120 tokens/s, 0.99 of the baseline, was slow by rpc-b (loss)"},
		{ok, "", ""},
		{slow, "warn", slowText},
	} {
		l.Row(step.row)
		lines := linesOf(t, &buf)
		if step.level == "" {
			if len(lines) != 0 {
				t.Errorf("step %d: unexpected %v", i, lines)
			}
			continue
		}
		if len(lines) != 1 || lines[0]["level"] != step.level || lines[0]["message"] != step.text {
			t.Errorf("step %d: %v, want one line %s %q", i, lines, step.level, step.text)
		}
	}
}

func TestSlowLineHasTheNumbersAsFields(t *testing.T) {
	var buf bytes.Buffer
	l, _ := logTo(&buf)
	l.Row(slowRow())
	lines := linesOf(t, &buf)
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1", len(lines))
	}
	want := map[string]any{
		"level": "warn", "source": "main", "model": "qwen", "phase": "decode", "request_id": "req-17", "outcome": "ok",
		"rate": 19.9, "baseline": 121.5, "r": 19.9 / 121.5, "leg": "rpc-b", "cause": "loss", "detail": "11 out-of-order segments",
		"excess_seconds": 1.3896, "local_seconds": 0.0018, "leg_seconds": 1.3835,
		"message": "slow: rpc-b ate 1.38 s of 1.39 s (loss: 11 out-of-order segments)",
	}
	for k, v := range want {
		f, isNumber := v.(float64)
		if got, ok := lines[0][k].(float64); isNumber && ok && math.Abs(got-f) < 1e-9 {
			continue
		}
		if lines[0][k] != v {
			t.Errorf("%s = %v, want %v", k, lines[0][k], v)
		}
	}
	if len(lines[0]) != len(want) {
		t.Errorf("%d fields, want %d: %v", len(lines[0]), len(want), lines[0])
	}
}

func TestSlowText(t *testing.T) {
	for _, c := range []struct {
		row  event.Row
		want string
	}{
		{event.Row{Cause: event.CauseLocal, ExcessMS: 2000, LocalMS: 1940}, "slow: this host ate 1.94 s of 2.00 s (local)"},
		{event.Row{Cause: event.CauseCommon, ExcessMS: 12_340, Detail: "load"}, "slow: 12.3 s lost on several legs at once (common_cause: load)"},
		{event.Row{Cause: event.CauseUnattributed, ExcessMS: 34}, "slow: 0.034 s lost, no leg named (unattributed)"},
		{
			event.Row{Outcome: event.OutcomeTimeout, Cause: event.CauseDeadPath, Leg: "rpc-c", ExcessMS: 180_000, LegsMS: map[string]float64{"rpc-c": 179_000}},
			"slow: failed with timeout: rpc-c ate 179 s of 180 s (dead_path)",
		},
		{event.Row{Outcome: event.OutcomeError, Cause: event.CauseUnattributed}, "slow: failed with error: 0.000 s lost, no leg named (unattributed)"},
	} {
		if got := slowText(c.row); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

func TestEpisodeLines(t *testing.T) {
	var buf bytes.Buffer
	l, _ := logTo(&buf)
	ep := event.Episode{StartNS: startNS, Source: "main", Model: "qwen", Phase: event.PhaseDecode, Cause: event.CauseLoss, Leg: "rpc-b", Slow: 3, Requests: 5}
	l.EpisodeOpened(ep)
	ep.EndNS, ep.Slow, ep.Requests = startNS+83*second, 16, 30
	l.EpisodeClosed(ep)
	lines := linesOf(t, &buf)
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	for i, want := range []string{
		"episode opened: rpc-b (loss), 3 slow of 5 requests",
		"episode closed after 83.0 s: rpc-b (loss), 16 slow of 30 requests",
	} {
		if lines[i]["message"] != want || lines[i]["level"] != "warn" || lines[i]["leg"] != "rpc-b" {
			t.Errorf("line %d: %v, want %q", i, lines[i], want)
		}
	}
}

func TestProblemLines(t *testing.T) {
	var buf bytes.Buffer
	l, _ := logTo(&buf)
	btf := event.Status{Collector: "tcp_events", Availability: event.Failed, Problems: []event.Problem{{Reason: "no_btf", Detail: "no /sys/kernel/btf/vmlinux"}}}
	for i, step := range []struct {
		statuses []event.Status
		want     []string
	}{
		{nil, nil},
		{[]event.Status{btf}, []string{"warn collector tcp_events: no_btf: no /sys/kernel/btf/vmlinux"}},
		{[]event.Status{btf}, nil},
		{[]event.Status{{Collector: "tcp_events", Availability: event.Up}}, []string{"info collector tcp_events: no_btf is over"}},
		{[]event.Status{btf, btf}, []string{"warn collector tcp_events: no_btf: no /sys/kernel/btf/vmlinux"}},
	} {
		l.Statuses(step.statuses)
		var got []string
		for _, line := range linesOf(t, &buf) {
			got = append(got, fmt.Sprint(line["level"], " ", line["message"]))
		}
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

func TestLinesAboutRequestsAreLimitedAndTheGapIsSaid(t *testing.T) {
	var buf bytes.Buffer
	l, now := logTo(&buf)
	const rows = 10_000
	for range rows {
		l.Row(slowRow())
	}
	if n := len(linesOf(t, &buf)); n != lineBurst {
		t.Fatalf("%d lines, want %d", n, lineBurst)
	}
	*now = now.Add(time.Second)
	l.Row(slowRow())
	lines := linesOf(t, &buf)
	if len(lines) != 1 || lines[0]["lines_left_out"] != float64(rows-lineBurst) {
		t.Errorf("%v, want one line with lines_left_out %d", lines, rows-lineBurst)
	}
	l.Row(slowRow())
	if lines := linesOf(t, &buf); len(lines) != 1 || lines[0]["lines_left_out"] != nil {
		t.Errorf("%v, want one line and nothing left out since the one before", lines)
	}
}

func TestALineBelowTheLevelCostsNoPlace(t *testing.T) {
	var buf bytes.Buffer
	l := NewLog(zerolog.New(&buf).Level(zerolog.WarnLevel))
	l.now = func() time.Time { return time.Unix(0, 0) }
	for range 10 * lineBurst {
		l.Row(slowRow()) // info but for the first
	}
	l.Row(okRow())
	lines := linesOf(t, &buf)
	if len(lines) != 2 || lines[1]["lines_left_out"] != nil {
		t.Errorf("%v, want slow and ok again, nothing left out", lines)
	}
}

// However a name is chosen, a line stays one line and no terminal obeys it.
func TestNoTextStartsALine(t *testing.T) {
	for _, h := range hostile {
		var plain, console bytes.Buffer
		for _, out := range []zerolog.Logger{
			zerolog.New(&plain),
			zerolog.New(zerolog.ConsoleWriter{Out: &console, NoColor: true}),
		} {
			l := NewLog(out)
			l.Row(event.Row{
				ID: h, Source: h, Model: h, Condition: h, Phase: event.Phase(h), Outcome: event.Outcome(h), Verdict: event.VerdictSlow,
				Cause: event.Cause(h), Detail: h, Leg: h, LegsMS: map[string]float64{h: 1},
			})
			l.Row(event.Row{ID: h, Source: h, Model: h, Phase: event.Phase(h), Verdict: event.VerdictOK, Rate: ptr(1), R: ptr(1)})
			l.EpisodeOpened(event.Episode{Source: h, Model: h, Phase: event.Phase(h), Cause: event.Cause(h), Leg: h})
			l.Statuses([]event.Status{{Collector: h, Problems: []event.Problem{{Reason: h, Detail: h}}}})
			l.Statuses(nil)
			promLog{out}.Println(h)
		}
		for name, buf := range map[string]*bytes.Buffer{"json": &plain, "console": &console} {
			if n := strings.Count(buf.String(), "\n"); n != 6 {
				t.Errorf("%s: %d lines of %.20q, want 6:\n%s", name, n, h, buf)
			}
			for _, r := range buf.String() {
				if r != '\n' && !unicode.IsGraphic(r) {
					t.Errorf("%s: %.20q leaves %U in a line", name, h, r)
				}
			}
		}
	}
}

func TestStatesOfManyModelsAreBounded(t *testing.T) {
	l, _ := logTo(new(bytes.Buffer))
	for i := range 10_000 {
		r := slowRow()
		r.Model = fmt.Sprint("m", i)
		l.Row(r)
	}
	if n := len(l.slow); n > maxPairs+1 {
		t.Errorf("%d states, want at most %d", n, maxPairs+1)
	}
}
