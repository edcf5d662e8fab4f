package export

import "grayfail/event"

// collectors tells what each collector says of itself. One that has not been
// tried has nothing to say: neither up nor down.
func (b *builder) collectors(statuses []event.Status) {
	for i := range statuses {
		s := &statuses[i]
		reasons := make(map[string]bool) // several problems may have one reason
		for _, p := range s.Problems {
			if !reasons[p.Reason] {
				reasons[p.Reason] = true
				b.gauge(collectorProblem, 1, s.Collector, p.Reason)
			}
		}
		if s.Availability == event.NotTried {
			continue
		}
		up := s.Availability == event.Up || s.Availability == event.Degraded
		b.gauge(collectorUp, boolean(up), s.Collector)
		b.gauge(collectorDuration, s.Duration.Seconds(), s.Collector)
		b.counter(collectorErrors, s.Errors, s.Collector)
		b.counter(eventsLost, s.Lost, s.Collector)
	}
}

// detector tells what the detector says of its own limits.
func (b *builder) detector(s *event.DetectorStats) {
	for _, c := range s.Ignored {
		b.counter(detectorIgnored, c.N, c.Name)
	}
	for _, c := range s.Freed {
		b.counter(detectorFreed, c.N, c.Name)
	}
	for _, c := range s.Entries {
		b.gauge(detectorEntries, float64(c.N), c.Name)
	}
	b.counter(detectorClockSteps, s.ClockSteps)
}

// intake tells what became of the records that others sent.
func (b *builder) intake(sources []event.Intake) {
	for _, s := range sources {
		for _, c := range s.Results {
			b.counter(requestIntake, c.N, s.Source, c.Name)
		}
	}
}

func (b *builder) reload(r event.ConfigReload) {
	if !r.Successful && r.TimeNS == 0 {
		return // nothing has been loaded yet
	}
	b.gauge(reloadSuccessful, boolean(r.Successful))
	if r.TimeNS != 0 {
		b.gauge(reloadTime, float64(r.TimeNS)/1e9)
	}
}
