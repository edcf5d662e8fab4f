package detector

import (
	"encoding/binary"
	"errors"
	"slices"

	"grayfail/event"
)

// errStateUsed: a detector that has judged is no place for another's state.
var errStateUsed = errors.New("the detector is not new")

// Restore takes up what Save left; the detector must be new. Note is what was
// given to Save, and nowNS the event time then. What the bounds of this
// detector have no room for is left out and counted. After an error, which is
// one of the ErrState ones, the detector is as new.
//
// If time was set while nothing ran, ClockStep says so before the first Advance.
func (d *Detector) Restore(state []byte) (note string, nowNS int64, err error) {
	if d.nowNS != 0 || d.stats.Requests != 0 || d.queue.len() != 0 || len(d.store.legs.all) != 0 {
		return "", 0, errStateUsed
	}
	payload, err := openState(state)
	if err != nil {
		return "", 0, err
	}
	r := stateReader{b: payload}
	note = r.text()
	d.nowNS = r.time()
	d.store.legs.nowNS = d.nowNS
	d.stats.Requests = r.uint()
	places := d.restoreLegs(&r)
	d.restoreFabric(&r)
	d.restoreModels(&r, places)
	for range r.count(10) {
		if e := r.episode(); e.EndNS > 0 {
			d.remember(e)
		}
	}
	for range r.count(4) {
		p := past{r.text(), r.text(), r.time(), r.time()}
		if p.startNS <= 0 || p.endNS <= p.startNS {
			r.fail("a request from %d to %d", p.startNS, p.endNS)
		}
		d.queue.keep(p)
	}
	if len(r.b) > 0 {
		r.fail("%d bytes are left over", len(r.b))
	}
	if r.err != nil {
		cfg := d.cfg
		*d = Detector{}
		d.init(cfg)
		return "", 0, r.err
	}
	return note, d.nowNS, nil
}

// restoreLegs returns the legs by their places in the state; nil for one that
// found no room.
func (d *Detector) restoreLegs(r *stateReader) []*leg {
	n := r.count(10)
	places := make([]*leg, 0, n)
	for range n {
		name := r.text()
		if r.err != nil {
			break
		}
		if name == "" || d.store.legs.byName[name] != nil {
			r.fail("leg %q is there twice or has no name", name)
			break
		}
		l := &leg{name: name, collective: name == otherLeg}
		r.leg(l)
		if len(d.store.legs.all) >= d.store.legs.max && !l.collective {
			d.store.legs.overflow++
			places = append(places, nil)
			continue
		}
		d.store.legs.byName[name] = l
		d.store.legs.all = append(d.store.legs.all, l)
		places = append(places, l)
	}
	return places
}

func (r *stateReader) leg(l *leg) {
	l.usedNS = r.time()
	l.netns, l.device = r.text(), r.text()
	l.rdma = rdmaPort{r.text(), r.small()}
	l.transport, l.reason = event.Transport(r.text()), r.text()
	if l.transport != "" && !slices.Contains(event.Transports, l.transport) {
		l.transport = event.TransportUnknown // of a later version
	}
	l.leftRDMANS = r.time()
	n := r.count(3)
	if n > maxClasses {
		r.fail("a leg has %d classes of exchanges", n)
		return
	}
	for range n {
		c := class{request: r.byte(), reply: r.byte(), n: r.small(), cachedAt: -1}
		for k := range min(c.n, classSamples) {
			c.ring[k] = turnTimes{r.f32(), r.f32(), r.f32(), r.f32()}
		}
		l.classes = append(l.classes, c)
	}
}

func (d *Detector) restoreFabric(r *stateReader) {
	for range r.count(19) {
		key := rdmaPort{r.text(), r.small()}
		p := &portSteps{usualRetries: r.f64(), usualSeconds: r.f64()}
		for range r.count(2) {
			c := portCounter{r.text(), event.RDMAMeaning(r.text())}
			if len(p.counters) < maxPortCounters {
				p.counters = append(p.counters, c)
			}
		}
		if r.err != nil || len(d.fabric.ports) >= maxRDMAPorts {
			return
		}
		if d.fabric.ports == nil {
			d.fabric.ports = make(map[rdmaPort]*portSteps)
		}
		d.fabric.ports[key] = p
	}
}

func (d *Detector) restoreModels(r *stateReader, places []*leg) {
	for range r.count(20) {
		source, name := r.text(), r.text()
		key := modelKey{source, name}
		m := &model{
			decode: newSeries(source, name, event.PhaseDecode), prefill: newSeries(source, name, event.PhasePrefill),
			used: r.uint(),
		}
		for _, s := range []*series{&m.decode, &m.prefill} {
			d.restoreSeries(r, s, places, len(d.models) < d.cfg.MaxModels)
		}
		switch {
		case r.err != nil:
			return
		case d.models[key] != nil:
			r.fail("model %q of %q is there twice", name, source)
			return
		case len(d.models) >= d.cfg.MaxModels:
			d.stats.ModelsOverflow++
			continue
		}
		m.used = min(m.used, d.stats.Requests)
		d.models[key] = m
		d.order = append(d.order, m)
	}
}

func (d *Detector) restoreSeries(r *stateReader, s *series, places []*leg, room bool) {
	n := r.count(2)
	if n > maxPrints {
		r.fail("a series has %d fingerprints", n)
		return
	}
	for range n {
		s.prints = append(s.prints, fingerprint{r.text(), r.time()})
	}
	s.fingerprint, s.replaced = r.byte(), r.bool()
	if int(s.fingerprint) >= max(1, len(s.prints)) {
		r.fail("fingerprint %d of %d", s.fingerprint, len(s.prints))
		return
	}
	n = r.count(1)
	if n > 256 {
		r.fail("a series has %d buckets of concurrency", n)
		return
	}
	for range n {
		s.adopted = append(s.adopted, r.uint())
	}
	s.suspicious, s.anchored = r.bool(), r.bool()
	for range r.count(3) {
		f := finding{}
		f.cause, f.leg = r.blame()
		f.soft = r.bool()
		if s.findings = append(s.findings, f); len(s.findings) > maxFindings {
			s.findings = s.findings[1:]
		}
	}
	for range r.count(1) {
		if s.learnedNS = append(s.learnedNS, r.time()); len(s.learnedNS) > max(1, d.cfg.LookBack) {
			s.learnedNS = s.learnedNS[1:]
		}
	}
	r.tracker(&s.episode)
	for range r.count(30) {
		st := d.restoreStratum(r, places)
		switch {
		case r.err != nil:
			return
		case s.find(st.key) != nil:
			r.fail("a stratum is there twice")
			return
		case !room:
		case d.strata >= d.cfg.MaxStrata:
			d.stats.StrataOverflow++
		default:
			d.strata++
			s.strata = append(s.strata, st)
		}
	}
	r.scores(&s.scores, places, d.cfg.CorrelateOver)
}

// scores keeps the newest of them, up to most.
func (r *stateReader) scores(s *scoreRing, places []*leg, most int) {
	n := r.count(2)
	if n > maxRingDevices {
		r.fail("scores of %d devices", n)
		return
	}
	for range n {
		s.devices = append(s.devices, deviceKey{r.text(), r.text()})
	}
	for range r.count(11) {
		sc := s.slot(most)
		sc.r, sc.beyond = r.f64(), r.bool()
		for range r.count(2) {
			at, n := r.small(), r.small()
			if at >= len(places) || n > 1<<16-1 || len(sc.resent) == maxResent {
				r.fail("retransmits of leg %d of %d", at, len(places))
				return
			}
			if places[at] != nil {
				sc.add(legResent{places[at], uint16(n)})
			}
		}
		for range r.count(5) {
			x := deviceDrops{r.byte(), r.f32()}
			if int(x.device) >= len(s.devices) || len(sc.drops) == maxScoreDevices {
				r.fail("drops of device %d of %d", x.device, len(s.devices))
				return
			}
			sc.drops = append(sc.drops, x)
		}
	}
}

// blame is a cause with its leg: "" where the cause names none.
func (r *stateReader) blame() (event.Cause, string) {
	cause, leg := event.Cause(r.text()), r.text()
	if cause != event.CauseNone && !slices.Contains(event.Causes, cause) {
		cause = event.CauseUnattributed // of a later version
	}
	switch {
	case !cause.NamesPath():
		leg = ""
	case leg == "":
		cause = event.CauseUnattributed
	}
	return cause, leg
}

func (r *stateReader) tracker(t *tracker) {
	t.open, t.decided = r.bool(), r.uint()
	for range r.count(14) {
		j := judged{decided: true, slow: true, startNS: r.time(), endNS: r.time(), id: r.text()}
		j.cause, j.leg = r.blame()
		j.excessMS, j.serial = r.f64(), r.uint()
		if j.serial > t.decided || len(t.recent) > 0 && j.serial <= t.recent[len(t.recent)-1].serial {
			r.fail("slow verdicts out of order")
			return
		}
		t.recent = append(t.recent, j)
	}
	t.okRun, t.calmRun, t.trailing, t.lastEndNS = r.small(), r.small(), r.small(), r.time()
	if !t.open {
		return
	}
	t.current = r.episode()
	if t.current.Source != t.source || t.current.Model != t.model || t.current.Phase != t.phase || t.current.EndNS != 0 {
		r.fail("an open episode of another series")
		return
	}
	for range r.count(11) {
		b := blame{}
		b.cause, b.leg = r.blame()
		b.excessMS, b.slow = r.f64(), r.small()
		t.blame = append(t.blame, b)
	}
}

func (r *stateReader) episode() event.Episode {
	e := event.Episode{
		ID: r.text(), StartNS: r.time(), EndNS: r.time(), Source: r.text(), Model: r.text(), Phase: event.Phase(r.text()),
	}
	e.Cause, e.Leg = r.blame()
	e.Slow, e.Requests = r.small(), r.small()
	if e.Slow > e.Requests || !slices.Contains(event.Phases, e.Phase) && r.err == nil {
		r.fail("an episode of phase %q with %d slow of %d", e.Phase, e.Slow, e.Requests)
	}
	n := r.count(1)
	if n > maxEpisodeIDs {
		r.fail("an episode lists %d requests", n)
		return e
	}
	for range n {
		e.RequestIDs = append(e.RequestIDs, r.text())
	}
	return e
}

func (d *Detector) restoreStratum(r *stateReader, places []*leg) *stratum {
	st := &stratum{window: window{max: d.cfg.Window}}
	st.key = stratumKey{concurrency: r.byte(), context: r.byte(), output: r.byte(), fingerprint: r.byte(), guessed: r.bool()}
	if st.key.fingerprint >= maxPrints {
		r.fail("fingerprint %d", st.key.fingerprint)
	}
	st.anchor, st.above, st.lowest = r.f64(), r.small(), r.f64()
	st.known, st.requests, st.usedNS = r.bool(), r.uint(), r.time()
	endNS := int64(0)
	for range r.count(9) {
		rate := r.f64()
		if endNS += r.int(); endNS < 0 || endNS > maxEventTime {
			r.fail("a sample at %d", endNS)
		}
		if r.err == nil {
			st.window.add(sample{rate, endNS}) // of more than Window the newest stay
		}
	}
	for range r.count(9) {
		if st.held = append(st.held, sample{r.f64(), r.time()}); len(st.held) > d.cfg.CloseAfter {
			st.held = st.held[1:]
		}
	}
	st.refs.requests = r.small()
	seen := make(map[int]bool)
	for range r.count(2) {
		at, ref := r.small(), legReference{n: uint32(r.small())}
		n := min(ref.n, referenceSamples)
		for k, b := 0, r.take(2*int(n)); 2*k < len(b); k++ {
			ref.ring[k] = logSpan(binary.LittleEndian.Uint16(b[2*k:]))
		}
		if at >= len(places) || seen[at] || r.err != nil {
			r.fail("a reference of leg %d of %d", at, len(places))
			break
		}
		seen[at] = true
		if ref.leg = places[at]; ref.leg != nil && ref.n > 0 {
			st.refs.legs = append(st.refs.legs, ref)
		}
	}
	return st
}
