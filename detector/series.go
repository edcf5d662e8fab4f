package detector

import (
	"cmp"
	"slices"

	"grayfail/event"
)

// series is one phase of one model at one source: its strata and its episode.
type series struct {
	source, model string
	phase         event.Phase
	strata        []*stratum
	episode       tracker
	// suspicious since the last slow verdict, until CloseAfter ok in a row:
	// accepted samples are held, not learned.
	suspicious bool
	// anchored: the anchor holds the baseline of the last accepted phase.
	anchored bool
	// findings are the last explained ones of this suspicion, before weigh.
	findings []finding
	// learnedNS are the ends of the last LookBack samples learned.
	learnedNS []int64
	scores    scoreRing
	// prints are the fingerprints seen, fingerprint is the place of the newest.
	// replaced: one of them has made room for another.
	prints      []fingerprint
	fingerprint uint8
	replaced    bool
	// adoptedNS is when the last regime was adopted by a call: what began
	// before it belongs to none.
	adoptedNS int64
	// adopted counts new regimes by bucket of concurrency.
	adopted []uint64
}

func newSeries(source, name string, phase event.Phase) series {
	return series{
		source: source, model: name, phase: phase,
		episode: tracker{source: source, model: name, phase: phase},
	}
}

// former says that a request began before the regime was adopted.
func (s *series) former(r *event.Request) bool {
	if s == nil || s.adoptedNS == 0 {
		return false
	}
	began := r.StartNS
	if began == 0 {
		began = r.EndNS
	}
	return began <= s.adoptedNS
}

// find returns the stratum, or nil.
func (s *series) find(k stratumKey) *stratum {
	for _, st := range s.strata {
		if st.key == k {
			return st
		}
	}
	return nil
}

// basis finds the stratum to compare with: the leaf, else its parent, else the
// neighbour in context. Decode prefers the longer context: it is the slower
// one. Prefill borrows from shorter prompts only, for the same reason.
func (s *series) basis(k stratumKey, c *Config) (*stratum, float64) {
	candidates := [4]stratumKey{k, k.parent(), k.parent(), k.parent()}
	candidates[2].context++
	candidates[3].context--
	for i, key := range candidates {
		if (i == 2 && s.phase == event.PhasePrefill) || (i == 3 && k.context == 0) {
			continue
		}
		if st := s.find(key); st != nil {
			if rate := st.baseline(c); rate > 0 {
				return st, rate
			}
		}
	}
	return nil, 0
}

// expire ages the strata of one request, unless an episode froze them: a fault
// that lasts longer than MaxAge must not forget what it is slower than.
func (s *series) expire(nowNS int64, c *Config) {
	if s.episode.open {
		return
	}
	for _, st := range s.strata {
		st.expire(nowNS, c.MaxAge)
	}
}

// accept takes the rate of a phase that was not slow into its strata.
func (s *series) accept(x sample, c *Config, parent, leaf *stratum) {
	if !s.suspicious {
		if len(s.learnedNS) == max(1, c.LookBack) {
			copy(s.learnedNS, s.learnedNS[1:])
			s.learnedNS = s.learnedNS[:len(s.learnedNS)-1]
		}
		s.learnedNS = append(s.learnedNS, x.endNS)
	}
	for i, st := range [2]*stratum{parent, leaf} {
		if st == nil || (i == 1 && leaf == parent) {
			continue
		}
		st.requests++
		st.usedNS = max(st.usedNS, x.endNS)
		if s.suspicious {
			st.hold(x, c)
		} else {
			st.learn(x, c)
		}
	}
}

// maxFindings is how many neighbours a soft finding is weighed against.
const maxFindings = 6

// weigh holds a soft finding against those of the slow phases before it: one
// that most of them contradict is withheld. Load on a host makes now this leg
// and now that one look like the culprit.
func (s *series) weigh(f finding) finding {
	if f.cause == event.CauseUnattributed {
		return f
	}
	agree := 0
	for _, g := range s.findings {
		if g.cause == f.cause && g.leg == f.leg {
			agree++
		}
	}
	before := len(s.findings)
	if before == maxFindings {
		copy(s.findings, s.findings[1:])
		s.findings = s.findings[:before-1]
	}
	s.findings = append(s.findings, f)
	if f.soft && before >= 2 && 2*agree < before {
		return unattributed("like %s of %s, but only %d of %d slow phases before it were: %s", f.cause, f.leg, agree, before, f.detail)
	}
	return f
}

// suspect starts a new run: whatever was accepted since the last slow verdict
// is too close to a fault to be learned.
func (s *series) suspect() {
	s.suspicious = true
	for _, st := range s.strata {
		st.held = st.held[:0]
	}
}

func (s *series) freeze(c *Config) {
	if len(s.learnedNS) == 0 {
		return
	}
	for _, st := range s.strata {
		st.freeze(s.learnedNS[0], c)
	}
}

func (s *series) release(c *Config) {
	s.suspicious = false
	s.findings = s.findings[:0]
	for _, st := range s.strata {
		st.release(c)
	}
}

// busiest returns one parent stratum of what runs now for each concurrency, in
// its order.
func (s *series) busiest() []*stratum {
	var out []*stratum
	for _, st := range s.strata {
		if st.key != st.key.parent() || st.key.fingerprint != s.fingerprint {
			continue
		}
		i := slices.IndexFunc(out, func(o *stratum) bool { return o.key.concurrency == st.key.concurrency })
		switch {
		case i < 0:
			out = append(out, st)
		case st.requests > out[i].requests:
			out[i] = st
		}
	}
	slices.SortFunc(out, func(a, b *stratum) int { return cmp.Compare(a.key.concurrency, b.key.concurrency) })
	return out
}
