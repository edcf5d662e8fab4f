package detector

import (
	"fmt"
	"testing"

	"grayfail/event"
)

// judgeOne gives one request a second and returns its decode row.
func judgeOne(t *testing.T, d *Detector, r event.Request) event.Row {
	t.Helper()
	r.ID, r.Source, r.Model, r.EndNS = fmt.Sprint(d.nowNS), "main", "m", d.nowNS+1e9
	if r.EndNS < 1e18 {
		r.EndNS = 1_800_000_000e9
	}
	if r.Outcome == "" {
		r.Outcome = event.OutcomeOK
	}
	if r.Concurrency == 0 {
		r.Concurrency = 1
	}
	r.GeneratedTokens = 32
	d.Advance(r.EndNS)
	d.Request(r)
	out := d.Advance(r.EndNS + 2e9)
	if len(out.Rows) != 2 {
		t.Fatalf("%d rows, want 2", len(out.Rows))
	}
	return out.Rows[0]
}

func verdicts(t *testing.T, d *Detector, n int, r event.Request, want event.Verdict) {
	t.Helper()
	for i := range n {
		if row := judgeOne(t, d, r); row.Verdict != want {
			t.Fatalf("request %d of fingerprint %q at %g tok/s: %s, want %s", i, r.Fingerprint, r.DecodeRate, row.Verdict, want)
		}
	}
}

func onlyBaseline(t *testing.T, d *Detector) event.Baseline {
	t.Helper()
	all := d.Baselines()
	if len(all) != 1 {
		t.Fatalf("%d baselines, want 1: %+v", len(all), all)
	}
	return all[0]
}

// A slower build says so by its fingerprint: it is a regime of its own, counted
// as adopted once, and the build before it is found again.
func TestFingerprintIsARegime(t *testing.T) {
	d := New(DefaultConfig())
	old := event.Request{DecodeRate: 100}
	verdicts(t, d, 10, old, event.VerdictUnknown)
	old.Fingerprint = "b1" // the source learns to say what runs: nothing new
	verdicts(t, d, 5, old, event.VerdictOK)
	if b := onlyBaseline(t, d); b.Adopted != 0 || b.Fingerprint != "b1" {
		t.Errorf("%+v, want nothing adopted yet", b)
	}
	slower := event.Request{DecodeRate: 40, Fingerprint: "b2"}
	verdicts(t, d, 10, slower, event.VerdictUnknown)
	verdicts(t, d, 1, slower, event.VerdictOK)
	if b := onlyBaseline(t, d); b.Adopted != 1 || b.Fingerprint != "b2" || b.Rate != 40 {
		t.Errorf("%+v, want b2 at 40, adopted once", b)
	}
	silent := event.Request{DecodeRate: 38} // for what ran last
	verdicts(t, d, 1, silent, event.VerdictOK)
	verdicts(t, d, 1, event.Request{DecodeRate: 19, Fingerprint: "b2"}, event.VerdictSlow)
	old.DecodeRate = 45
	verdicts(t, d, 1, old, event.VerdictSlow)
	old.DecodeRate = 95
	verdicts(t, d, 1, old, event.VerdictOK)
	if b := onlyBaseline(t, d); b.Adopted != 1 || b.Rate < 95 {
		t.Errorf("%+v, want b1 again and no second adoption", b)
	}
	if n := len(d.Episodes()); n != 0 {
		t.Errorf("%d episodes", n)
	}
}

// Without a fingerprint a model swapped for a slower one is slow: nothing is
// adopted silently.
func TestSwapWithoutFingerprintIsSlow(t *testing.T) {
	d := New(DefaultConfig())
	verdicts(t, d, 10, event.Request{DecodeRate: 100}, event.VerdictUnknown)
	verdicts(t, d, 400, event.Request{DecodeRate: 40}, event.VerdictSlow)
	if b := onlyBaseline(t, d); b.Adopted != 0 || b.Rate != 100 {
		t.Errorf("%+v", b)
	}
}

// Whoever names a new build with each request fills no table.
func TestFingerprintsAreBounded(t *testing.T) {
	d := New(DefaultConfig())
	for i := range 200 {
		verdicts(t, d, 1, event.Request{DecodeRate: 100, Fingerprint: fmt.Sprint("b", i)}, event.VerdictUnknown)
	}
	s := &d.order[0].decode
	if len(s.prints) != maxPrints || len(s.strata) > 2*maxPrints || d.strata != len(s.strata) {
		t.Errorf("%d fingerprints, %d strata, %d counted", len(s.prints), len(s.strata), d.strata)
	}
	if b := onlyBaseline(t, d); b.Adopted != 199 {
		t.Errorf("adopted %d, want 199", b.Adopted)
	}
	failed := event.Request{DecodeRate: 1, Fingerprint: "made up", Outcome: event.OutcomeError}
	verdicts(t, d, 1, failed, event.VerdictSlow)
	if s.printName() != "b199" {
		t.Errorf("a failed request made %q what runs", s.printName())
	}
}

// Guessed token counts are compared with guessed ones only.
func TestGuessedCountsAreApart(t *testing.T) {
	d := New(DefaultConfig())
	counted, guessed := event.Request{DecodeRate: 100}, event.Request{DecodeRate: 40, LowConfidence: true}
	verdicts(t, d, 10, counted, event.VerdictUnknown)
	verdicts(t, d, 10, guessed, event.VerdictUnknown)
	verdicts(t, d, 5, counted, event.VerdictOK)
	verdicts(t, d, 5, guessed, event.VerdictOK)
	guessed.DecodeRate = 19
	verdicts(t, d, 1, guessed, event.VerdictSlow)
}

// A client's own fault says nothing about a path; the server's does.
func TestClientErrors(t *testing.T) {
	for status, want := range map[int]event.Verdict{
		0: event.VerdictSlow, 400: event.VerdictUnknown, 401: event.VerdictUnknown, 404: event.VerdictUnknown,
		413: event.VerdictUnknown, 422: event.VerdictUnknown, 408: event.VerdictSlow, 429: event.VerdictSlow,
		500: event.VerdictSlow, 502: event.VerdictSlow, 503: event.VerdictSlow, 504: event.VerdictSlow,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			d := New(DefaultConfig())
			verdicts(t, d, 10, event.Request{DecodeRate: 100, Fingerprint: "b"}, event.VerdictUnknown)
			failed := event.Request{Outcome: event.OutcomeError, Status: status}
			verdicts(t, d, 5, failed, want)
			if open := len(d.Episodes()) == 1; open != (want == event.VerdictSlow) {
				t.Errorf("an episode is open: %v", open)
			}
			if row := judgeOne(t, d, event.Request{Outcome: event.OutcomeTimeout, Status: status}); row.Verdict != event.VerdictSlow {
				t.Errorf("a timeout is %s", row.Verdict)
			}
		})
	}
}

// A crowd of bad requests does not end an episode.
func TestClientErrorsDoNotCalm(t *testing.T) {
	d := New(DefaultConfig())
	verdicts(t, d, 10, event.Request{DecodeRate: 100}, event.VerdictUnknown)
	verdicts(t, d, 3, event.Request{DecodeRate: 30}, event.VerdictSlow)
	verdicts(t, d, 200, event.Request{Outcome: event.OutcomeError, Status: 404}, event.VerdictUnknown)
	if got := episodes(d); got != "open 3/3" {
		t.Errorf("episodes %s", got)
	}
	if n := d.Stats().ClientErrors; n != 200 {
		t.Errorf("%d counted", n)
	}
}

// A decay to 0.35 in 2,000 requests is reported as eroded long before it is
// slow, and then slow against the anchor.
func TestDecayIsErodedThenSlow(t *testing.T) {
	d := New(DefaultConfig())
	verdicts(t, d, 10, event.Request{DecodeRate: 100}, event.VerdictUnknown)
	erodedAt, slowAt := 0, 0
	for i := range 2000 {
		rate := 100 - 65*float64(i+1)/2000
		row := judgeOne(t, d, event.Request{DecodeRate: rate})
		b := onlyBaseline(t, d)
		switch {
		case row.Verdict == event.VerdictSlow && slowAt == 0:
			slowAt = i
			if rate > 45 || rate < 44.9 {
				t.Errorf("slow at %.2f, want just below 45: half of 0.9 x the anchor", rate)
			}
		case row.Verdict != event.VerdictSlow && slowAt > 0:
			t.Fatalf("request %d at %.1f is %s after it was slow", i, rate, row.Verdict)
		}
		if b.Eroded && erodedAt == 0 {
			erodedAt = i
		}
		if erodedAt > 0 && !b.Eroded {
			t.Fatalf("request %d: no longer eroded", i)
		}
		if b.Anchor < 99.5 || b.Rate < 0.9*b.Anchor-1e-9 {
			t.Fatalf("request %d: baseline %.1f, anchor %.1f", i, b.Rate, b.Anchor)
		}
	}
	if erodedAt < 615 || erodedAt > 760 || slowAt < 1690 || slowAt > 1695 {
		t.Errorf("eroded at request %d, slow at %d", erodedAt, slowAt)
	}
	if got := episodes(d); got != fmt.Sprintf("open %d/%d", 2000-slowAt, 2000-slowAt) {
		t.Errorf("episodes %s", got)
	}
}

// Idle strata make room; those in use do not.
func TestStrataMakeRoom(t *testing.T) {
	c := DefaultConfig()
	c.MaxStrata = 8
	d := New(c)
	for n := range 4 { // each a parent and a leaf
		verdicts(t, d, 10, event.Request{DecodeRate: 100, Concurrency: float64(int(1) << n)}, event.VerdictUnknown)
	}
	verdicts(t, d, 1, event.Request{DecodeRate: 100, Concurrency: 64}, event.VerdictUnknown)
	if s := d.Stats(); s.StrataFreed != 0 || s.StrataOverflow == 0 || s.Strata != 8 {
		t.Fatalf("%+v, want no stratum freed while all are in use", s)
	}
	d.Advance(d.nowNS + int64(c.MaxAge))
	verdicts(t, d, 1, event.Request{DecodeRate: 90, Concurrency: 1}, event.VerdictUnknown) // stale, but its anchor is known
	verdicts(t, d, 10, event.Request{DecodeRate: 50, Concurrency: 64}, event.VerdictUnknown)
	verdicts(t, d, 1, event.Request{DecodeRate: 50, Concurrency: 64}, event.VerdictOK)
	verdicts(t, d, 1, event.Request{DecodeRate: 51, Concurrency: 1}, event.VerdictOK)
	verdicts(t, d, 1, event.Request{DecodeRate: 49, Concurrency: 1}, event.VerdictSlow)
	if s := d.Stats(); s.StrataFreed != 2 || s.Strata != 8 {
		t.Errorf("%+v, want two freed", s)
	}
}
