package detector

import "grayfail/event"

// maxPrints bounds the fingerprints of a series whose baselines are kept: a
// swap back, and replicas of two builds behind one source, find theirs again.
const maxPrints = 4

// fingerprint is one build, quantisation or configuration of an engine, as its
// source names it.
type fingerprint struct {
	name   string
	usedNS int64
}

// printOf finds the fingerprint of a request in the series. One that the
// series has not seen begins a new regime, if the request can be learned from:
// its strata warm up from nothing and each counts as adopted. A request without
// one is taken for what ran last.
func (d *Detector) printOf(s *series, r *event.Request, learnable bool) uint8 {
	if r.Fingerprint == "" {
		return s.fingerprint
	}
	oldest := 0
	for i := range s.prints {
		p := &s.prints[i]
		if p.name == r.Fingerprint {
			p.usedNS = max(p.usedNS, r.EndNS)
			if learnable {
				s.fingerprint = uint8(i)
			}
			return uint8(i)
		}
		if p.usedNS < s.prints[oldest].usedNS {
			oldest = i
		}
	}
	switch {
	case !learnable:
		return s.fingerprint
	case len(s.prints) == 0:
		// What was learned before the source began to name what runs is taken
		// to be of this one.
	case len(s.prints) < maxPrints:
		oldest = len(s.prints)
	default:
		d.freeStrata(s, func(st *stratum) bool { return st.key.fingerprint == uint8(oldest) })
	}
	if oldest == len(s.prints) {
		s.prints = append(s.prints, fingerprint{})
	} else {
		s.replaced = true
	}
	s.prints[oldest] = fingerprint{r.Fingerprint, r.EndNS}
	s.fingerprint = uint8(oldest)
	return s.fingerprint
}

// countAdoption notes a new regime at one concurrency.
func (s *series) countAdoption(concurrency uint8) {
	for len(s.adopted) <= int(concurrency) {
		s.adopted = append(s.adopted, 0)
	}
	s.adopted[concurrency]++
}

func (s *series) adoptions(concurrency uint8) uint64 {
	if int(concurrency) >= len(s.adopted) {
		return 0
	}
	return s.adopted[concurrency]
}

// printName is the fingerprint of what ran last; "" where none is named.
func (s *series) printName() string {
	if int(s.fingerprint) >= len(s.prints) {
		return ""
	}
	return s.prints[s.fingerprint].name
}

// isNewRegime says that a stratum to be made begins a regime: fingerprints came
// before it, and its own has nothing at this concurrency yet.
func (s *series) isNewRegime(k stratumKey) bool {
	if len(s.prints) < 2 && !s.replaced || k.fingerprint == 0 && !s.replaced {
		return false
	}
	for _, st := range s.strata {
		if st.key.fingerprint == k.fingerprint && st.key.concurrency == k.concurrency {
			return false
		}
	}
	return true
}
