package main

import "grayfail/event"

// intake counts what came in by push and by traces, and what became of it.
// Bodies are whole POSTs or exports; everything else is single records.
func (s *server) intake() []event.Intake {
	p, t := s.push.Stats(), s.otlp.stats()
	return []event.Intake{
		{Source: "push", Results: []event.Count{
			{Name: "accepted", N: p.Accepted}, {Name: "malformed", N: p.Bad}, {Name: "duplicate", N: p.Duplicates},
			{Name: "body_limited", N: p.RateLimited}, {Name: "body_too_large", N: p.TooLarge},
		}},
		{Source: "otlp", Results: []event.Count{
			{Name: "accepted", N: t.Requests}, {Name: "ignored", N: t.Unknown}, {Name: "rejected", N: t.Rejected}, {Name: "duplicate", N: t.Repeated},
			{Name: "body_malformed", N: t.Malformed}, {Name: "body_limited", N: t.Limited}, {Name: "body_too_large", N: t.TooLarge},
		}},
	}
}
