package detector_test

import (
	"testing"
	"time"

	"grayfail/detector"
	"grayfail/event"
)

// The clock was wrong by years, or for one moment only, and stepped back:
// what is slow by the new one is named as if nothing had been, in every time
// that comes.
func TestClockStepsBack(t *testing.T) {
	const years = int64(4_000_000_000e9)
	for _, c := range []struct {
		name string
		play func(g *engine, feed func([]event.Record), d *detector.Detector) []event.Row
	}{
		{"it was ahead while baselines were made", func(g *engine, feed func([]event.Record), d *detector.Detector) []event.Row {
			now := g.nowNS
			g.nowNS = years
			feed(g.requests(12, "ok"))
			g.nowNS = now
			return nil
		}},
		{"it was ahead for one turn of the pipeline", func(g *engine, feed func([]event.Record), d *detector.Detector) []event.Row {
			feed(g.requests(12, "ok"))
			out := d.Advance(years)
			d.Retransmit(event.Retransmit{Leg: "b", TimeNS: years, Kind: event.RetransmitRTO})
			d.Qdisc(event.Qdisc{TimeNS: years, Device: "veth1", Handle: "1:"})
			return out.Rows
		}},
		{"only events were ahead", func(g *engine, feed func([]event.Record), d *detector.Detector) []event.Row {
			feed(g.requests(12, "ok"))
			for i := range 100 {
				at := years + int64(i)*1e9
				d.Exchange(event.Exchange{Leg: "b", SendNS: at, Duration: time.Second, Flow: event.Flow{Socket: 2}})
				d.Exchange(event.Exchange{Leg: "b", SendNS: g.nowNS, Duration: 200 * 24 * time.Hour, Flow: event.Flow{Socket: 2}})
				d.Retransmit(event.Retransmit{Leg: "b", TimeNS: at, Kind: event.RetransmitRTO})
				d.Connection(event.Connection{Leg: "b", EndNS: at})
				d.Qdisc(event.Qdisc{TimeNS: at, Device: "veth1", Handle: "1:"})
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newEngine("a", "b")
			cfg := detector.DefaultConfig()
			cfg.MaxRecords = 2048 // room is made now and then
			d := detector.New(cfg)
			var rows []event.Row
			feed := func(records []event.Record) {
				for _, rec := range records {
					rows = append(rows, d.Advance(knownAt(rec)).Rows...)
					give(d, rec)
				}
			}
			rows = append(rows, c.play(g, feed, d)...)
			feed(g.requests(30, "after"))
			g.fault = func(leg int, e *event.Exchange) { late(15*time.Millisecond)(leg, e) }
			feed(g.requests(4, "bad"))
			g.fault = nil
			if rows = append(rows, d.Advance(g.nowNS+2e9).Rows...); len(rows) != 2*(12+30+4) {
				t.Errorf("%d rows, want those of 46 requests", len(rows))
			}
			slowRows(t, rows)
			all(t, of(rows, "after", event.PhaseDecode), 30, event.VerdictOK, "", "")
			all(t, of(rows, "bad", event.PhaseDecode), 4, event.VerdictSlow, event.CauseDelay, "b")
			if s := d.Stats(); s.Rebased+s.EventsAhead == 0 || s.Pending != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}
