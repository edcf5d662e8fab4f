package detector

import (
	"encoding/binary"
	"maps"
	"slices"

	"grayfail/event"
)

// Of episodes that are over the newest few are saved, with some of their ids,
// and of requests the newest few.
const (
	savedPast     = 256
	savedEpisodes = 32
	savedIDs      = 50
)

// Save appends what must survive a restart to dst: baselines with their
// anchors, what legs usually take, open episodes and what leads to one, and how
// often a regime was adopted. Requests that wait and exchanges are not in it.
//
// Note is kept beside it for the caller and must be short. The result is
// checksummed; Restore reads it, in this version of the program or a later one.
func (d *Detector) Save(dst []byte, note string) []byte {
	start := len(dst)
	w := stateWriter{append(dst, make([]byte, stateHeader)...)}
	w.text(note)
	w.int(d.nowNS)
	w.uint(d.stats.Requests)
	places := make(map[*leg]int, len(d.store.legs.all))
	w.count(len(d.store.legs.all))
	for i, l := range d.store.legs.all {
		places[l] = i
		w.leg(l)
	}
	w.fabric(&d.fabric)
	w.count(len(d.order))
	for _, m := range d.order {
		w.text(m.decode.source)
		w.text(m.decode.model)
		w.uint(m.used)
		w.series(&m.decode, places)
		w.series(&m.prefill, places)
	}
	past := d.past[max(0, len(d.past)-savedEpisodes):]
	w.count(len(past))
	for i := range past {
		w.episode(&past[i], savedIDs)
	}
	w.judged(&d.queue)
	sealState(w.b[start:])
	return w.b
}

// judged writes when the last requests were in flight: one that comes after the
// restart may have run beside them, or be one of them.
func (w *stateWriter) judged(q *queue) {
	n := min(savedPast, len(q.past))
	w.count(n)
	for i := n - 1; i >= 0; i-- {
		p := q.newest(i)
		w.text(p.source)
		w.text(p.id)
		w.int(p.startNS)
		w.int(p.endNS)
	}
}

func (w *stateWriter) leg(l *leg) {
	w.text(l.name)
	w.int(l.usedNS)
	w.text(l.netns)
	w.text(l.device)
	w.text(l.rdma.device)
	w.count(l.rdma.port)
	w.text(string(l.transport))
	w.text(l.reason)
	w.int(l.leftRDMANS)
	w.count(len(l.classes))
	for i := range l.classes {
		c := &l.classes[i]
		w.byte(c.request)
		w.byte(c.reply)
		w.count(c.n)
		for k := range min(c.n, classSamples) {
			t := &c.ring[k]
			w.f32(t.duration)
			w.f32(t.first)
			w.f32(t.ack)
			w.f32(t.rtt)
		}
	}
}

func (w *stateWriter) fabric(f *fabric) {
	w.count(len(f.ports))
	for _, key := range slices.SortedFunc(maps.Keys(f.ports), rdmaPort.compare) {
		p := f.ports[key]
		w.text(key.device)
		w.count(key.port)
		w.f64(p.usualRetries)
		w.f64(p.usualSeconds)
		w.count(len(p.counters))
		for _, c := range p.counters {
			w.text(c.name)
			w.text(string(c.meaning))
		}
	}
}

func (w *stateWriter) series(s *series, places map[*leg]int) {
	w.count(len(s.prints))
	for _, p := range s.prints {
		w.text(p.name)
		w.int(p.usedNS)
	}
	w.byte(s.fingerprint)
	w.bool(s.replaced)
	w.count(len(s.adopted))
	for _, n := range s.adopted {
		w.uint(n)
	}
	w.bool(s.suspicious)
	w.bool(s.anchored)
	w.count(len(s.findings))
	for _, f := range s.findings {
		w.text(string(f.cause))
		w.text(f.leg)
		w.bool(f.soft)
	}
	w.count(len(s.learnedNS))
	for _, t := range s.learnedNS {
		w.int(t)
	}
	w.tracker(&s.episode)
	w.count(len(s.strata))
	for _, st := range s.strata {
		w.stratum(st, places)
	}
	w.scores(&s.scores, places)
}

// scores writes the oldest first.
func (w *stateWriter) scores(s *scoreRing, places map[*leg]int) {
	w.count(len(s.devices))
	for _, key := range s.devices {
		w.text(key.netns)
		w.text(key.device)
	}
	w.count(len(s.ring))
	for i := range s.ring {
		sc := &s.ring[(s.next+i)%len(s.ring)]
		w.f64(sc.r)
		w.bool(sc.beyond)
		w.count(len(sc.resent))
		for _, x := range sc.resent {
			w.count(places[x.leg])
			w.uint(uint64(x.n))
		}
		w.count(len(sc.drops))
		for _, x := range sc.drops {
			w.byte(x.device)
			w.f32(x.fraction)
		}
	}
}

func (w *stateWriter) tracker(t *tracker) {
	w.bool(t.open)
	w.uint(t.decided)
	w.count(len(t.recent))
	for _, j := range t.recent {
		w.int(j.startNS)
		w.int(j.endNS)
		w.text(j.id)
		w.text(string(j.cause))
		w.text(j.leg)
		w.f64(max(0, j.excessMS))
		w.uint(j.serial)
	}
	w.count(t.okRun)
	w.count(t.calmRun)
	w.count(t.trailing)
	w.int(t.lastEndNS)
	if !t.open {
		return
	}
	w.episode(&t.current, maxEpisodeIDs)
	w.count(len(t.blame))
	for _, b := range t.blame {
		w.text(string(b.cause))
		w.text(b.leg)
		w.f64(b.excessMS)
		w.count(b.slow)
	}
}

func (w *stateWriter) episode(e *event.Episode, ids int) {
	w.text(e.ID)
	w.int(e.StartNS)
	w.int(e.EndNS)
	w.text(e.Source)
	w.text(e.Model)
	w.text(string(e.Phase))
	w.text(string(e.Cause))
	w.text(e.Leg)
	w.count(e.Slow)
	w.count(e.Requests)
	kept := e.RequestIDs[:min(ids, len(e.RequestIDs))]
	w.count(len(kept))
	for _, id := range kept {
		w.text(id)
	}
}

func (w *stateWriter) stratum(s *stratum, places map[*leg]int) {
	w.byte(s.key.concurrency)
	w.byte(s.key.context)
	w.byte(s.key.output)
	w.byte(s.key.fingerprint)
	w.bool(s.key.guessed)
	w.f64(s.anchor)
	w.count(s.above)
	w.f64(s.lowest)
	w.bool(s.known)
	w.uint(s.requests)
	w.int(s.usedNS)
	w.count(s.window.len())
	before := int64(0)
	for i := range s.window.len() {
		x := s.window.at(i)
		w.f64(x.rate)
		w.int(x.endNS - before) // mostly close to each other
		before = x.endNS
	}
	w.count(len(s.held))
	for _, x := range s.held {
		w.f64(x.rate)
		w.int(x.endNS)
	}
	w.count(s.refs.requests)
	w.count(len(s.refs.legs))
	for i := range s.refs.legs {
		r := &s.refs.legs[i]
		w.count(places[r.leg])
		w.uint(uint64(r.n))
		for _, x := range r.ring[:min(r.n, referenceSamples)] {
			w.b = binary.LittleEndian.AppendUint16(w.b, uint16(x))
		}
	}
}
