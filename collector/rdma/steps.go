package rdma

import "grayfail/event"

// Steps turns readings into how far the counters that have a Meaning moved
// between them. The zero value is ready to use. Not safe for concurrent use.
type Steps struct {
	atNS int64
	last map[counterKey]uint64
}

type counterKey struct {
	device string
	port   int
	event  string
}

// Next takes a reading and returns the steps since the one before. A counter
// that fell was reset with its device, and one that is new has no past: neither
// has a step.
func (s *Steps) Next(r *event.RDMA) []event.RDMAStep {
	now := make(map[counterKey]uint64, len(s.last))
	var out []event.RDMAStep
	for _, c := range r.Counters {
		meaning := MeaningOf(c.Event)
		if meaning == "" {
			continue
		}
		key := counterKey{c.Device, c.Port, c.Event}
		now[key] = c.Value
		if before, known := s.last[key]; known && c.Value > before && s.atNS > 0 && r.TimeNS > s.atNS {
			out = append(out, event.RDMAStep{
				FromNS: s.atNS, TimeNS: r.TimeNS, Device: c.Device, Port: c.Port,
				Event: c.Event, Meaning: meaning, Count: c.Value - before,
			})
		}
	}
	s.atNS, s.last = r.TimeNS, now
	return out
}
