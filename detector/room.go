package detector

import "slices"

// freeStrata forgets the strata of a series that match, and returns how many.
func (d *Detector) freeStrata(s *series, match func(*stratum) bool) int {
	before := len(s.strata)
	s.strata = slices.DeleteFunc(s.strata, match)
	n := before - len(s.strata)
	d.strata -= n
	d.stats.StrataFreed += uint64(n)
	return n
}

// freeStratum makes room for a stratum: the least recently used one goes, if it
// had no request for MaxAge, so that it has nothing but its anchor left. One
// whose series has an open episode stays. Of equally old ones a leaf goes
// before its parent.
func (d *Detector) freeStratum() bool {
	var in *series
	var oldest *stratum
	for _, m := range d.order {
		for _, s := range []*series{&m.decode, &m.prefill} {
			if s.episode.open {
				continue
			}
			for _, st := range s.strata {
				if oldest == nil || st.usedNS < oldest.usedNS || st.usedNS == oldest.usedNS && st.key.output > oldest.key.output {
					in, oldest = s, st
				}
			}
		}
	}
	if oldest == nil || d.nowNS-oldest.usedNS < int64(d.cfg.MaxAge) {
		return false
	}
	d.freeStrata(in, func(st *stratum) bool { return st == oldest })
	return true
}
