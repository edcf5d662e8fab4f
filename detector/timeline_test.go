package detector

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"grayfail/event"
)

// step is a run of like requests and what must be said about each of them.
type step struct {
	n           int
	rate        float64
	outcome     event.Outcome // default ok
	concurrency float64       // default 1
	tokens      int           // default 32
	context     int           // prompt tokens
	pause       time.Duration // before the first

	verdict event.Verdict // "": no row
	detail  string
	// After the last of the run:
	state    event.BaselineState // of the concurrency's stratum
	baseline float64             // 0: any
	episodes string              // e.g. "closed 4/6, open 3/3"; "": any
}

// timeline feeds steps to a detector, one request a second.
type timeline struct {
	*testing.T
	d      *Detector
	nowNS  int64
	serial int
}

func newTimeline(t *testing.T, c Config) *timeline {
	return &timeline{T: t, d: New(c), nowNS: 1_800_000_000e9}
}

func (l *timeline) run(steps []step) {
	l.Helper()
	for i, s := range steps {
		l.nowNS += int64(s.pause)
		for range s.n {
			l.one(i, s)
		}
		conc := max(1, s.concurrency)
		var found bool
		for _, b := range l.d.Baselines() {
			if b.Phase != event.PhaseDecode || b.Concurrency != concurrencyLabel(concurrencyBucket(conc)) {
				continue
			}
			found = true
			if s.state != "" && b.State != s.state {
				l.Errorf("step %d: state %s, want %s", i, b.State, s.state)
			}
			if s.baseline != 0 && math.Abs(b.Rate-s.baseline) > 0.05 {
				l.Errorf("step %d: baseline %.2f, want %.2f", i, b.Rate, s.baseline)
			}
		}
		if s.state != "" && !found {
			l.Errorf("step %d: no baseline at concurrency %g, want state %s", i, conc, s.state)
		}
		if got := episodes(l.d); s.episodes != "" && got != s.episodes {
			l.Errorf("step %d: episodes %q, want %q", i, got, s.episodes)
		}
	}
}

func (l *timeline) one(i int, s step) {
	l.Helper()
	l.serial++
	l.nowNS += 1e9
	tokens := s.tokens
	if tokens == 0 {
		tokens = 32
	}
	r := event.Request{
		ID: fmt.Sprint(l.serial), Source: "main", Model: "m", EndNS: l.nowNS, GeneratedTokens: tokens, PromptTokens: s.context,
		DecodeRate: s.rate, Outcome: s.outcome, Concurrency: max(1, s.concurrency),
	}
	if r.Outcome == "" {
		r.Outcome = event.OutcomeOK
	}
	if s.rate > 0 {
		r.FirstTokenNS = l.nowNS - int64(float64(tokens)/s.rate*1e9)
	}
	l.d.Advance(l.nowNS) // events come while time goes on
	l.d.Request(r)
	if early := l.d.Advance(l.nowNS + 2e9 - 1); len(early.Rows) != 0 {
		l.Fatalf("step %d: a verdict before the hold was over", i)
	}
	out := l.d.Advance(l.nowNS + 2e9)
	if s.verdict == "" {
		if len(out.Rows) != 0 {
			l.Errorf("step %d, request %d: %d rows, want none", i, l.serial, len(out.Rows))
		}
		return
	}
	if len(out.Rows) != 2 || out.Rows[0].Phase != event.PhaseDecode {
		l.Fatalf("step %d: %d rows, want decode and prefill", i, len(out.Rows))
	}
	row := out.Rows[0]
	if row.Verdict != s.verdict || (s.detail != "" && row.Detail != s.detail) {
		l.Errorf("step %d, request %d at %g tok/s: %s %q, want %s %q", i, l.serial, s.rate, row.Verdict, row.Detail, s.verdict, s.detail)
	}
}

func episodes(d *Detector) string {
	text := ""
	for _, e := range d.Episodes() {
		if text != "" {
			text += ", "
		}
		if e.EndNS == 0 {
			text += "open "
		} else {
			text += "closed "
		}
		text += fmt.Sprintf("%d/%d", e.Slow, e.Requests)
	}
	if text == "" {
		return "none"
	}
	return text
}

const (
	ok      = event.VerdictOK
	slow    = event.VerdictSlow
	unknown = event.VerdictUnknown
	warming = event.BaselineWarming
	ready   = event.BaselineReady
	frozen  = event.BaselineFrozen
	stale   = event.BaselineStale
)

func TestTimelines(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"the 11th request is the first judged", []step{
			{n: 9, rate: 100, verdict: unknown, state: warming},
			{n: 1, rate: 10, verdict: unknown, state: ready, baseline: 100}, // learned: it was unknown
			{n: 1, rate: 49.9, verdict: slow},
		}},
		{"exactly half is not slow", []step{
			{n: 10, rate: 100, verdict: unknown},
			{n: 1, rate: 50, verdict: ok},
			{n: 1, rate: 49.99, verdict: slow},
		}},
		{"too few tokens have no verdict and teach nothing", []step{
			{n: 20, rate: 100, tokens: 7, verdict: unknown, detail: "too_short"},
			{n: 10, rate: 100, verdict: unknown, state: ready},
			{n: 1, rate: 10, tokens: 7, verdict: unknown, detail: "too_short"},
			{n: 1, rate: 10, tokens: 8, verdict: slow},
		}},
		{"errors and timeouts are slow, canceled requests are nothing", []step{
			{n: 1, outcome: event.OutcomeError, verdict: slow},
			{n: 10, rate: 100, verdict: unknown},
			{n: 1, outcome: event.OutcomeTimeout, rate: 90, verdict: slow},
			{n: 3, outcome: event.OutcomeCanceled, rate: 1, verdict: ""},
			{n: 1, rate: 90, verdict: ok, episodes: "none"},
		}},
		{"failed requests are not learned", []step{
			{n: 10, rate: 100, verdict: unknown},
			{n: 12, rate: 90, verdict: ok},
			{n: 2, rate: 500, outcome: event.OutcomeError, verdict: slow, baseline: 90},
		}},
		{"a fault of 600 requests is not learned", []step{
			{n: 30, rate: 100, verdict: unknownThenOK(10)},
			{n: 600, rate: 40, verdict: slow, state: frozen, baseline: 100, episodes: "open 600/600"},
			{n: 9, rate: 95, verdict: ok, state: frozen, baseline: 100},
			{n: 1, rate: 95, verdict: ok, state: ready, episodes: "closed 600/600"},
		}},
		{"the fast tail of a fault does not drag the baseline", alternate(30, 40, 60, 100)},
		{"the run that closes an episode is learned", []step{
			{n: 10, rate: 100, verdict: unknown},
			{n: 5, rate: 30, verdict: slow, episodes: "open 5/5"},
			{n: 10, rate: 94, verdict: ok, state: ready, baseline: 94, episodes: "closed 5/5"}, // 7 of 100, 10 of 94
		}},
		{"a lone slow request is no episode; what was near it is learned once it is calm", []step{
			{n: 10, rate: 100, verdict: unknown},
			{n: 1, rate: 30, verdict: slow},
			{n: 9, rate: 80, verdict: ok, baseline: 100, episodes: "none"},
			{n: 1, rate: 80, verdict: ok, baseline: 90, state: ready}, // 10 of each
		}},
		{"two slow of ten do not open, three do", []step{
			{n: 10, rate: 100, verdict: unknown},
			{n: 1, rate: 30, verdict: slow},
			{n: 7, rate: 80, verdict: ok},
			{n: 1, rate: 30, verdict: slow, episodes: "none"},
			{n: 1, rate: 30, verdict: slow, episodes: "open 3/10", state: frozen},
			{n: 10, rate: 80, verdict: ok, episodes: "closed 3/10"},
		}},
		{"an episode does not flap", []step{
			{n: 10, rate: 100, verdict: unknown},
			{n: 3, rate: 30, verdict: slow, episodes: "open 3/3"},
			{n: 9, rate: 80, verdict: ok},
			{n: 1, rate: 30, verdict: slow, episodes: "open 4/13"},
			{n: 9, rate: 80, verdict: ok, episodes: "open 4/13"},
			{n: 1, rate: 80, verdict: ok, episodes: "closed 4/13"},
		}},
		{"concurrency is judged against its own kind", []step{
			{n: 20, rate: 100, verdict: unknownThenOK(10)},
			{n: 10, rate: 45, concurrency: 2, verdict: unknown, state: ready, baseline: 45},
			{n: 10, rate: 44, concurrency: 2, verdict: ok},
			{n: 10, rate: 23, concurrency: 8, verdict: unknown},
			{n: 5, rate: 23, concurrency: 8, verdict: ok, episodes: "none"},
			{n: 1, rate: 20, concurrency: 2, verdict: slow},
			{n: 1, rate: 45, verdict: slow}, // alone
		}},
		{"a neighbour in context stands in, a distant one does not", []step{
			{n: 10, rate: 100, verdict: unknown},
			{n: 1, rate: 90, context: 2000, verdict: ok},
			{n: 1, rate: 40, context: 20_000, verdict: unknown},
		}},
		{"slow decay is stopped by the anchor", append(decay(100, 46),
			step{n: 1, rate: 46, verdict: ok, baseline: 90},
			step{n: 3, rate: 44.9, verdict: slow, baseline: 90, episodes: "open 3/3"},
		)},
		{"a faster regime becomes the anchor", []step{
			{n: 10, rate: 100, verdict: unknown},
			{n: 60, rate: 150, verdict: ok, baseline: 150},
			{n: 1, rate: 74, verdict: slow},
		}},
		{"after a night without requests the baseline is stale", []step{
			{n: 20, rate: 100, verdict: unknownThenOK(10), state: ready},
			{n: 1, rate: 80, pause: 7 * time.Hour, verdict: unknown},
			{n: 1, rate: 44, verdict: slow, state: ready, baseline: 100}, // against the anchor: too few samples for a median
		}},
		{"a fault older than max_age does not forget what it is slower than", []step{
			{n: 20, rate: 100, verdict: unknownThenOK(10)},
			{n: 3, rate: 30, verdict: slow, state: frozen},
			{n: 3, rate: 30, pause: 7 * time.Hour, verdict: slow, state: frozen, baseline: 100, episodes: "open 6/6"},
		}},
		{"the clock steps back by a day: baselines and episodes stay", []step{
			{n: 20, rate: 100, verdict: unknownThenOK(10), state: ready},
			{n: 1, rate: 90, pause: -24 * time.Hour, verdict: ok, state: ready, baseline: 100},
			{n: 3, rate: 30, verdict: slow, state: frozen, episodes: "open 3/3"},
			{n: 3, rate: 30, pause: -24 * time.Hour, verdict: slow, state: frozen, episodes: "open 6/6"},
			{n: 10, rate: 90, verdict: ok, state: ready, episodes: "closed 6/6"},
			{n: 1, rate: 80, pause: 7 * time.Hour, verdict: unknown}, // it expires by the new clock
		}},
		{"an episode ends when its load is gone to a stratum without baseline", []step{
			{n: 10, rate: 100, verdict: unknown},
			{n: 3, rate: 30, verdict: slow, episodes: "open 3/3"},
			{n: 49, rate: 40, concurrency: 2, verdict: unknown, state: warming, episodes: "open 3/3"},
			{n: 1, rate: 40, concurrency: 2, verdict: unknown, state: ready, episodes: "closed 3/3"},
			{n: 1, rate: 40, concurrency: 2, verdict: ok},
		}},
	} {
		t.Run(c.name, func(t *testing.T) { newTimeline(t, DefaultConfig()).run(expand(c.steps)) })
	}
}

// unknownThenOK marks a run whose first n verdicts are unknown, the rest ok.
func unknownThenOK(n int) event.Verdict { return event.Verdict(fmt.Sprint(n)) }

// expand splits the runs that unknownThenOK marked.
func expand(steps []step) []step {
	var out []step
	for _, s := range steps {
		var n int
		if _, err := fmt.Sscan(string(s.verdict), &n); err != nil {
			out = append(out, s)
			continue
		}
		first := step{n: n, rate: s.rate, verdict: unknown}
		s.n, s.verdict = s.n-n, ok
		out = append(out, first, s)
	}
	return out
}

// alternate makes a fault whose requests are slow and barely accepted by
// turns: the accepted ones must not be learned.
func alternate(n int, slowRate, fastRate, normal float64) []step {
	steps := []step{{n: 10, rate: normal, verdict: unknown}}
	for range n {
		steps = append(steps, step{n: 1, rate: slowRate, verdict: slow}, step{n: 2, rate: fastRate, verdict: ok})
	}
	return append(steps, step{n: 1, rate: slowRate, verdict: slow, state: frozen, baseline: normal})
}

// decay goes down from one rate to another in 2,000 requests.
func decay(from, to float64) []step {
	steps := []step{{n: 10, rate: from, verdict: unknown}}
	for i := range 200 {
		steps = append(steps, step{n: 10, rate: from + (to-from)*float64(i+1)/200, verdict: ok})
	}
	return steps
}

// A better hour does not become the standard; a better regime does, after two
// windows of it.
func TestAnchorRises(t *testing.T) {
	c := DefaultConfig()
	c.Window = 20
	newTimeline(t, c).run([]step{
		{n: 10, rate: 100, verdict: unknown},
		{n: 10, rate: 100, verdict: ok, baseline: 100}, // the window is full
		{n: 25, rate: 140, verdict: ok, baseline: 140},
		{n: 30, rate: 100, verdict: ok, baseline: 100}, // 0.9 x 140 would be 126
		{n: 50, rate: 140, verdict: ok, baseline: 140},
		{n: 30, rate: 100, verdict: ok, baseline: 108}, // 0.9 x the 120 on the way up
		{n: 110, rate: 140, verdict: ok, baseline: 140},
		{n: 30, rate: 100, verdict: ok, baseline: 126},
	})
}

func TestAdopt(t *testing.T) {
	l := newTimeline(t, DefaultConfig())
	l.run([]step{
		{n: 10, rate: 100, verdict: unknown},
		{n: 5, rate: 40, verdict: slow, state: frozen, episodes: "open 5/5"},
	})
	if n := l.d.Adopt("main", "other"); n != 0 {
		t.Errorf("%d strata of an unknown model adopted", n)
	}
	if n := l.d.Adopt("", "m"); n != 2 { // the parent and the leaf
		t.Errorf("%d strata adopted, want 2", n)
	}
	if s := &l.d.order[0].decode; len(s.findings)+len(s.learnedNS) != 0 {
		t.Errorf("findings %v and times %v of the regime before are left", s.findings, s.learnedNS)
	}
	if out := l.d.Advance(l.nowNS + 3e9); len(out.Closed) != 1 || out.Closed[0].Slow != 5 || out.Closed[0].EndNS == 0 {
		t.Errorf("closed %+v, want the episode of 5", out.Closed)
	}
	if out := l.d.Advance(l.nowNS + 3e9); len(out.Closed) != 0 {
		t.Errorf("closed %+v a second time", out.Closed)
	}
	l.nowNS += 3e9
	l.run([]step{
		{n: 10, rate: 40, verdict: unknown, state: ready, baseline: 40, episodes: "closed 5/5"},
		{n: 1, rate: 35, verdict: ok},
	})
	if b := l.d.Baselines(); len(b) != 1 || b[0].Adopted != 1 || b[0].Anchor != 40 {
		t.Errorf("baselines %+v, want one with anchor 40, adopted once", b)
	}
}

// Rows belong to the caller: what is written into one is not in another.
func TestRowsAreTheCallers(t *testing.T) {
	d := New(DefaultConfig())
	for i := range 14 {
		rate := 100.0
		if i >= 10 {
			rate = 10
		}
		end := 1_800_000_000e9 + int64(i)*10e9
		d.Request(event.Request{ID: fmt.Sprint(i), Source: "s", Model: "m", FirstTokenNS: end - int64(32e9/rate), EndNS: end, GeneratedTokens: 32, DecodeRate: rate, Outcome: event.OutcomeOK, Concurrency: 1})
	}
	slow := 0
	for _, row := range d.Flush().Rows {
		switch {
		case row.Verdict != event.VerdictSlow && row.LegsMS != nil:
			t.Errorf("%s %s has legs %v", row.ID, row.Verdict, row.LegsMS)
		case row.Verdict == event.VerdictSlow:
			slow++
			if len(row.LegsMS) != 0 || row.LegsMS == nil {
				t.Fatalf("%s: legs %v, want an empty map of its own", row.ID, row.LegsMS)
			}
			row.LegsMS["mine"] = 1
		}
		if text, err := json.Marshal(row); err != nil || strings.Contains(string(text), `"legs_ms":null`) {
			t.Errorf("%s, %v", text, err)
		}
	}
	if slow != 4 {
		t.Errorf("%d slow rows", slow)
	}
}
