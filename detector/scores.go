package detector

import (
	"cmp"
	"slices"

	"grayfail/event"
)

// score is the normalized rate of one decode phase beside what the legs showed
// during it. What is not listed showed nothing, so that 256 quiet legs take no
// room.
type score struct {
	r float64
	// resent are the legs with retransmits. beyond: there were more of them
	// than are kept, and those left out are not known to have had none.
	resent []legResent
	beyond bool
	// drops by device, for those with a reading of their queues.
	drops []deviceDrops
}

type legResent struct {
	leg *leg
	n   uint16
}

type deviceDrops struct {
	device   uint8 // in scoreRing.devices
	fraction float32
}

const (
	// maxResent legs with retransmits in one request: with more of them it is
	// no leg's own fault.
	maxResent       = 6
	maxScoreDevices = 8
	maxRingDevices  = 32
)

// scoreRing holds the newest scores of a model.
type scoreRing struct {
	ring    []score
	next    int // the oldest, once the ring is full
	devices []deviceKey
	// fresh: there are scores that Scores has not given yet.
	fresh bool
}

// slot makes room for one more score; its lists are empty, and keep their
// memory.
func (s *scoreRing) slot(max int) *score {
	s.fresh = true
	if len(s.ring) < max {
		s.ring = append(s.ring, score{})
		return &s.ring[len(s.ring)-1]
	}
	sc := &s.ring[s.next]
	s.next = (s.next + 1) % len(s.ring)
	sc.resent, sc.drops, sc.beyond = sc.resent[:0], sc.drops[:0], false
	return sc
}

// device finds or makes the place of a device; false when there is no room.
func (s *scoreRing) device(key deviceKey) (uint8, bool) {
	if i := slices.Index(s.devices, key); i >= 0 {
		return uint8(i), true
	}
	if len(s.devices) == maxRingDevices && !s.forgetDevices() {
		return 0, false
	}
	s.devices = append(s.devices, key)
	return uint8(len(s.devices) - 1), true
}

// forgetDevices drops those that no score mentions any more.
func (s *scoreRing) forgetDevices() bool {
	var places [maxRingDevices]uint8
	var used [maxRingDevices]bool
	for i := range s.ring {
		for _, d := range s.ring[i].drops {
			used[d.device] = true
		}
	}
	kept := 0
	for i, key := range s.devices {
		if used[i] {
			places[i] = uint8(kept)
			s.devices[kept] = key
			kept++
		}
	}
	if kept == len(s.devices) {
		return false
	}
	s.devices = s.devices[:kept]
	for i := range s.ring {
		for k := range s.ring[i].drops {
			d := &s.ring[i].drops[k]
			d.device = places[d.device]
		}
	}
	return true
}

func (s *scoreRing) forget(l *leg) {
	for i := range s.ring {
		sc := &s.ring[i]
		sc.resent = slices.DeleteFunc(sc.resent, func(x legResent) bool { return x.leg == l })
	}
}

// score keeps r beside the legs' evidence, for the rank correlation.
func (d *Detector) score(s *series, row *event.Row, r *event.Request, out *Output) {
	from, to, ok := interval(r)
	if !ok || len(d.store.legs.all) == 0 {
		return
	}
	sc := s.scores.slot(d.cfg.CorrelateOver)
	sc.r = *row.R
	before := deviceKey{}
	for _, l := range d.store.legs.all {
		if n := l.resends.count(from, to); n > 0 {
			sc.add(legResent{l, uint16(min(n, 1<<16-1))})
		}
		key := deviceKey{l.netns, l.device}
		if l.device == "" || key == before { // legs of one device come in runs
			continue
		}
		before = key
		if len(sc.drops) < maxScoreDevices {
			d.scoreDevice(&s.scores, sc, key, from, to)
		}
	}
	if d.cfg.Verbose {
		out.Scores = append(out.Scores, d.verbose(row, from, to))
	}
}

// add keeps the legs with most retransmits.
func (sc *score) add(x legResent) {
	if n := len(sc.resent); n < maxResent {
		if n == cap(sc.resent) {
			sc.resent = append(make([]legResent, 0, min(maxResent, max(2, 2*n))), sc.resent...)
		}
		sc.resent = append(sc.resent, x)
		return
	}
	sc.beyond = true
	least := 0
	for i := range sc.resent {
		if sc.resent[i].n < sc.resent[least].n {
			least = i
		}
	}
	if x.n > sc.resent[least].n {
		sc.resent[least] = x
	}
}

func (d *Detector) scoreDevice(s *scoreRing, sc *score, key deviceKey, from, to int64) {
	packets, dropped, known := d.drops.during(key.netns, key.device, from, to)
	if !known || packets+dropped == 0 {
		return
	}
	at, room := s.device(key)
	if !room || slices.ContainsFunc(sc.drops, func(x deviceDrops) bool { return x.device == at }) {
		return
	}
	sc.drops = append(sc.drops, deviceDrops{at, float32(float64(dropped) / float64(packets+dropped))})
}

// verbose is a score with every leg, for replay.
func (d *Detector) verbose(row *event.Row, from, to int64) Score {
	sc := Score{ID: row.ID, Condition: row.Condition, R: *row.R}
	for _, l := range d.store.legs.all {
		e := Evidence{Leg: l.name, DropFraction: -1, Retransmits: l.resends.count(from, to)}
		if l.device != "" {
			if packets, dropped, known := d.drops.during(l.netns, l.device, from, to); known && packets+dropped > 0 {
				e.DropFraction = float64(dropped) / float64(packets+dropped)
			}
		}
		sc.Evidence = append(sc.Evidence, e)
	}
	return sc
}

// ScoreSet is a copy of the newest scores of one model: what a Correlator
// needs, so that the detector is not held up while it computes.
type ScoreSet struct {
	key modelKey
	// unchanged since the last call of Scores: there is nothing in it.
	unchanged bool
	r         []float64
	columns   []column
}

// Scores returns the scores of every model; those of a model in which nothing
// was judged since the last call are empty and say so.
func (d *Detector) Scores() []ScoreSet {
	out := make([]ScoreSet, 0, len(d.order))
	for _, m := range d.order {
		s := &m.decode
		set := ScoreSet{key: modelKey{s.source, s.model}, unchanged: !s.scores.fresh}
		if s.scores.fresh {
			s.scores.fresh = false
			set.r, set.columns = s.scores.columns(d.store.legs.all)
		}
		out = append(out, set)
	}
	return out
}

// columns turns the scores around: what each leg showed, score by score. Legs
// of one device share the column of its drops.
func (s *scoreRing) columns(legs []*leg) (r []float64, out []column) {
	byLeg, byDevice := make(map[*leg]int), make(map[deviceKey]int)
	for i := range s.ring {
		r = append(r, s.ring[i].r)
		for _, x := range s.ring[i].resent {
			if _, known := byLeg[x.leg]; !known {
				byLeg[x.leg] = len(out)
				out = append(out, column{legs: []string{x.leg.name}, evidence: EvidenceRetransmits})
			}
		}
	}
	for l, at := range byLeg {
		c := &out[at]
		for i := range s.ring {
			sc := &s.ring[i]
			k := slices.IndexFunc(sc.resent, func(x legResent) bool { return x.leg == l })
			switch {
			case k >= 0:
				c.add(i, float64(sc.resent[k].n))
			case !sc.beyond:
				c.add(i, 0)
			}
		}
	}
	for at, key := range s.devices {
		c := column{evidence: EvidenceDropFraction}
		for i := range s.ring {
			for _, x := range s.ring[i].drops {
				if int(x.device) == at {
					c.add(i, float64(x.fraction))
				}
			}
		}
		byDevice[key] = len(out)
		out = append(out, c)
	}
	for _, l := range legs {
		if at, known := byDevice[deviceKey{l.netns, l.device}]; known && l.device != "" {
			out[at].legs = append(out[at].legs, l.name)
		}
	}
	return r, out
}

// Correlator computes the rank correlations of the models of one detector and
// keeps those of models in which nothing new was judged. It may run beside the
// detector.
type Correlator struct {
	Permutations int
	Seed         uint64

	cached map[modelKey][]event.Correlation
}

// Update returns the correlations, one for each model, leg and evidence: of
// several sources of a model that with most requests, of equals the first by
// name. Rates of two sources are not ranked together, they may differ by more
// than any fault.
func (c *Correlator) Update(sets []ScoreSet) []event.Correlation {
	next := make(map[modelKey][]event.Correlation, len(sets))
	for i := range sets {
		set := &sets[i]
		if set.unchanged {
			next[set.key] = c.cached[set.key]
			continue
		}
		found := correlate(set.r, set.columns, c.Permutations, c.Seed)
		for k := range found {
			found[k].Model = set.key.model
		}
		next[set.key] = found
	}
	c.cached = next

	type key struct{ model, leg, evidence string }
	type place struct {
		at     int
		source string
	}
	var out []event.Correlation
	seen := make(map[key]place)
	for i := range sets {
		source := sets[i].key.source
		for _, x := range next[sets[i].key] {
			k := key{x.Model, x.Leg, x.Evidence}
			p, twice := seen[k]
			switch {
			case !twice:
				seen[k] = place{len(out), source}
				out = append(out, x)
			case cmp.Or(cmp.Compare(out[p.at].N, x.N), cmp.Compare(source, p.source)) < 0:
				out[p.at] = x
				seen[k] = place{p.at, source}
			}
		}
	}
	return out
}
