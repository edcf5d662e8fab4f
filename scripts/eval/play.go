package main

import (
	"slices"

	"grayfail/detector"
	"grayfail/event"
	"grayfail/scripts/eval/scenario"
)

// tick is the turn of the pipeline: what came within it is handed over at once.
const tick = int64(100e6)

// opening is when an episode was reported.
type opening struct {
	atNS    int64
	startNS int64
	phase   event.Phase
}

// judged is what the detector said of a timeline.
type judged struct {
	rows     []event.Row // decode
	prefill  []event.Row
	episodes []event.Episode // of decode
	openings []opening
	// erodedAt counts the rows when the baseline was first reported as eroded;
	// -1 when it never was.
	erodedAt int
}

// play feeds a timeline to a detector as the exporter does, turn by turn. With
// alone it leaves out what only the worker's host can see.
func play(t *scenario.Timeline, cfg detector.Config, alone bool) judged {
	d := detector.New(cfg)
	out := judged{erodedAt: -1}
	take := func(o detector.Output, atNS int64) {
		for _, r := range o.Rows {
			if r.Phase == event.PhaseDecode {
				out.rows = append(out.rows, r)
			} else {
				out.prefill = append(out.prefill, r)
			}
		}
		if t.Decay && out.erodedAt < 0 && len(o.Rows) > 0 && eroded(d) {
			out.erodedAt = len(out.rows)
		}
		for _, e := range o.Opened {
			out.openings = append(out.openings, opening{atNS, e.StartNS, e.Phase})
		}
	}
	now := int64(0)
	until := func(ns int64) {
		if now == 0 {
			now = ns - ns%tick
		}
		for idle := 0; now+tick <= ns; idle++ {
			if idle == 40 { // nothing waits any more
				now = ns - ns%tick
				return
			}
			now += tick
			take(d.Advance(now), now)
		}
	}
	for i := range t.Items {
		item := &t.Items[i]
		until(item.AtNS)
		switch x := item.What.(type) {
		case event.Exchange:
			d.Exchange(x)
		case event.Request:
			d.Request(x)
		case event.Retransmit:
			if !alone || x.Side == event.SideCoordinator {
				d.Retransmit(x)
			}
		case event.Connection:
			d.Connection(x)
		case event.Qdisc:
			d.Qdisc(x)
		case event.LegChange:
			d.Leg(x)
		case scenario.Adopt:
			d.Adopt("", x.Model)
		case scenario.Restart:
			take(d.Advance(now+4e9), now+4e9)
			now += 4e9
			d = restart(d, cfg)
		}
	}
	until(now + 40*tick)
	take(d.Flush(), now)
	for _, e := range d.Episodes() {
		if e.Phase == event.PhaseDecode {
			out.episodes = append(out.episodes, e)
		}
	}
	return out
}

func eroded(d *detector.Detector) bool {
	return slices.ContainsFunc(d.Baselines(), func(b event.Baseline) bool { return b.Phase == event.PhaseDecode && b.Eroded })
}

// restart gives the detector that a new process starts with: what was saved,
// and none of what waited.
func restart(old *detector.Detector, cfg detector.Config) *detector.Detector {
	d := detector.New(cfg)
	if _, _, err := d.Restore(old.Save(nil, "")); err != nil {
		panic(err) // our own bytes
	}
	return d
}
