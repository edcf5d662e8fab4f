package main

import "grayfail/event"

// detectorStats names what the detector counts.
func (p *pipeline) detectorStats() event.DetectorStats {
	p.mu.Lock()
	st := p.det.Stats()
	p.mu.Unlock()
	return event.DetectorStats{
		Ignored: []event.Count{
			{Name: "duplicate_request", N: st.Duplicates},
			{Name: "request_in_the_future", N: st.Ahead},
			{Name: "event_in_the_future", N: st.EventsAhead},
			{Name: "client_error", N: st.ClientErrors},
			{Name: "too_many_requests", N: st.PendingOverflow},
			{Name: "unusable_exchange", N: st.ExchangesUnusable},
			{Name: "sums_too_old", N: st.SumsLost},
		},
		Freed: []event.Count{
			{Name: "models", N: st.ModelsFreed}, {Name: "strata", N: st.StrataFreed}, {Name: "legs", N: st.LegsFreed}, {Name: "sources", N: st.SourcesFreed},
		},
		Entries: []event.Count{
			{Name: "models", N: uint64(st.Models)}, {Name: "strata", N: uint64(st.Strata)}, {Name: "legs", N: uint64(st.Legs)},
			{Name: "queues", N: uint64(st.Queues)}, {Name: "pending", N: uint64(st.Pending)}, {Name: "exchanges", N: uint64(st.Exchanges)},
		},
		ClockSteps: st.ClockSteps + st.Rebased,
	}
}
