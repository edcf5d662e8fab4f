package export

import (
	"cmp"
	"fmt"
	"slices"

	"grayfail/event"
	"grayfail/export/board"
)

// boardModels and boardPoints bound the plots and the requests in each.
const (
	boardModelsMax = 24
	boardPoints    = 100
)

// modelKey is what one plot is about.
type modelKey struct {
	source, model string
	phase         event.Phase
}

// boardModels has a plot for each phase of each model that is remembered, slow
// ones first.
func boardModels(s *event.Snapshot, rows []event.Row) []board.Model {
	points := make(map[modelKey][]board.Point)
	newest := make(map[modelKey]*event.Row)
	for i := range rows {
		r := &rows[i]
		k := modelKey{r.Source, r.Model, r.Phase}
		if newest[k] == nil {
			newest[k] = r
		}
		if r.Rate != nil && len(points[k]) < boardPoints {
			points[k] = append(points[k], point(r))
		}
	}
	busiest := make(map[modelKey]*event.Baseline)
	for i := range s.Baselines {
		b := &s.Baselines[i]
		k := modelKey{b.Source, b.Model, b.Phase}
		if busiest[k] == nil || b.Requests > busiest[k].Requests {
			busiest[k] = b
		}
		if _, ok := newest[k]; !ok {
			newest[k] = nil
		}
	}
	var out []board.Model
	for k, r := range newest {
		if len(points[k]) == 0 && busiest[k] == nil {
			continue // no request of it had a rate: nothing to show
		}
		m := board.Model{Source: label(k.source), Model: cmp.Or(label(k.model), "(no name)"), Phase: string(k.phase), Level: board.Wait, Now: "-", Baseline: "-", State: "none"}
		if r != nil {
			m.Now, m.Baseline = rateOrDash(r.Rate), rateOrDash(r.Baseline)
		}
		m.Plot.Points = points[k]
		slices.Reverse(m.Plot.Points)
		if b := busiest[k]; b != nil {
			describeBaseline(&m, b)
		}
		for i := range s.Episodes {
			if e := &s.Episodes[i]; e.EndNS == 0 && (modelKey{e.Source, e.Model, e.Phase}) == k {
				m.Level = board.Bad
			}
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(x, y board.Model) int {
		return cmp.Or(cmp.Compare(legOrder[x.Level], legOrder[y.Level]),
			cmp.Compare(x.Model, y.Model), cmp.Compare(x.Source, y.Source), cmp.Compare(x.Phase, y.Phase))
	})
	return out[:min(len(out), boardModelsMax)]
}

// describeBaseline says how far a verdict can be trusted: by the baseline of the
// concurrency that most requests have.
func describeBaseline(m *board.Model, b *event.Baseline) {
	m.State = string(b.State)
	if b.Rate > 0 && m.Baseline == "-" {
		m.Baseline = rateText(&b.Rate)
	}
	m.Detail = fmt.Sprintf("%d requests are what is usual at concurrency %s.", b.Samples, label(b.Concurrency))
	if b.State == event.BaselineReady {
		m.Level = board.Good
	}
	if b.Eroded {
		m.Level = board.Warn
		m.Detail += fmt.Sprintf(" It has sunk below 0.8 of the %.4g tokens/s that it was.", b.Anchor)
	}
}

func rateOrDash(v *float64) string {
	if v == nil {
		return "-"
	}
	return rateText(v)
}

func point(r *event.Row) board.Point {
	p := board.Point{Rate: *r.Rate, Mark: board.MarkUnknown}
	if r.Baseline != nil {
		p.Baseline = *r.Baseline
	}
	switch r.Verdict {
	case event.VerdictOK:
		p.Mark = board.MarkOK
	case event.VerdictSlow:
		p.Mark = board.MarkSlow
	}
	return p
}
