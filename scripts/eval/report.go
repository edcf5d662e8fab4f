package main

import (
	"cmp"
	"fmt"
	"math"

	"grayfail/scripts/eval/scenario"
)

// report is docs/evaluation.json; the Markdown says the same in words.
type report struct {
	Seeds         int             `json:"seeds"`
	Targets       []target        `json:"targets"`
	Shows         []target        `json:"shows"`
	Methods       []methodReport  `json:"methods"`
	SetOn         methodReport    `json:"grayfail_on_the_seeds_thresholds_are_set_on"`
	Scenarios     []scenarioLine  `json:"scenarios"`
	Null          []nullDays      `json:"null_days"`
	Recordings    []recordingLine `json:"recordings"`
	WithoutWorker int             `json:"rows_other_without_the_worker"`
}

// target is one figure beside what it must be.
type target struct {
	What   string `json:"what"`
	Target string `json:"target"`
	Value  string `json:"value"`
	Met    bool   `json:"met"`
}

type methodReport struct {
	Method string `json:"method"`
	figures
	summary
	// AskedBlamed of Asked looks of rank correlation at scenarios without a
	// guilty path named one.
	Asked       int `json:"looks_without_a_guilty_path,omitempty"`
	AskedBlamed int `json:"looks_that_named_one,omitempty"`
}

type scenarioLine struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	figures
	summary
}

type recordingLine struct {
	Name      string `json:"name"`
	Requests  int    `json:"requests"`
	Slow      int    `json:"slow"`
	Found     int    `json:"found"`
	Hits      int    `json:"hits"`
	Right     int    `json:"right"`
	Wrong     int    `json:"wrong"`
	Abstained int    `json:"abstained"`
	Failures  int    `json:"failures"`
}

func newReport(seeds int, even, odd []played, null []nullDays, recordings []recordingLine) *report {
	r := &report{Seeds: seeds, Null: null, Recordings: recordings}
	for m := range methods {
		f := total(odd, m, everyKind)
		line := methodReport{Method: methodNames[m], figures: f, summary: f.summary()}
		if m == correlation {
			for i := range odd {
				line.Asked, line.AskedBlamed = line.Asked+odd[i].asked, line.AskedBlamed+odd[i].blamed
			}
		}
		r.Methods = append(r.Methods, line)
	}
	f := total(even, ours, everyKind)
	r.SetOn = methodReport{Method: methodNames[ours], figures: f, summary: f.summary()}
	for i := range odd {
		f := odd[i].by[ours]
		r.Scenarios = append(r.Scenarios, scenarioLine{odd[i].scenario.Name, odd[i].scenario.Kind, f, f.summary()})
	}
	r.WithoutWorker = r.Methods[ours].Differ + r.SetOn.Differ
	r.aim(odd)
	r.show(odd)
	return r
}

// aim compares with the targets of the design.
func (r *report) aim(odd []played) {
	all := r.Methods[ours]
	least := func(what string, have *float64, want float64) {
		r.Targets = append(r.Targets, target{what, fmt.Sprintf(">= %g", want), number(have), have != nil && *have >= want})
	}
	most := func(what string, have float64, want float64) {
		r.Targets = append(r.Targets, target{what, fmt.Sprintf("<= %g", want), fmt.Sprintf("%.4g", have), have <= want})
	}
	least("episode precision", all.EpisodePrecision, 0.95)
	least("episode recall", all.EpisodeRecall, 0.95)
	least("cause and leg right, of requests named", all.RightShare, 0.972)
	most("cause or leg wrong, of requests named", value(all.WrongShare), 0.01)
	right, wrong := perScenario(odd)
	least("the same, mean of scenarios", rounded(right), 0.972)
	most("wrong, mean of scenarios", math.Round(wrong*1e4)/1e4, 0.01)
	f := total(odd, ours, pathless)
	most("paths named in host, load and mix scenarios", float64(f.Innocent), 0)
	most("slow requests until an episode is found, worst", value(all.DelayRequestsMax), 5)
	most("seconds from the third slow request's end until it is reported, worst", value(all.DelaySecondsMax), 7)
	most("the same of requests surely slow (below 0.45): requests", value(all.SureRequestsMax), 5)
	most("and seconds", value(all.SureSecondsMax), 7)
	least("share of found episodes within both", all.InTimeShare, 0.95)
	for _, n := range r.Null {
		most(fmt.Sprintf("alarms a day and series without fault, noise %.2f, %d days", n.Sigma, n.SeriesDays), n.PerDay, 0.1)
	}
	most("rows that are other without the worker's lines", float64(r.WithoutWorker), 0)
}

// show has what must be seen by name.
func (r *report) show(odd []played) {
	add := func(what, want, have string, met bool) { r.Shows = append(r.Shows, target{what, want, have, met}) }
	by := make(map[string]*played)
	for i := range odd {
		by[odd[i].scenario.Name] = &odd[i]
	}
	if p := by[scenario.LongFault]; p != nil {
		f, plain := &p.by[ours], &p.by[plainWindow]
		ceiling, flagged, plainly := 100*part(f.Slow, 600*f.Runs), 100*part(f.Caught, 600*f.Runs), 100*part(plain.Caught, 600*f.Runs)
		add("600 requests at 0.4: share flagged", fmt.Sprintf("within 2 points of the ceiling, %.1f%%", ceiling),
			fmt.Sprintf("%.1f%% (plain window %.1f%%)", flagged, plainly), ceiling-flagged <= 2)
	}
	if p := by[scenario.Ramp]; p != nil {
		f := &p.by[ours]
		add("ramp 1 -> 8 -> 1 without fault", "nobody flagged; unknown before the strata are warm",
			fmt.Sprintf("%d of %d flagged, %d unknown", f.Flagged, f.Requests, f.Unknown), f.Flagged == 0 && f.Unknown > 0)
	}
	if p := by[scenario.LossyRamp]; p != nil {
		f := &p.by[ours]
		add("the same ramp with 5% loss on one leg", "flagged and named in every run, never wrongly",
			fmt.Sprintf("in %d of %d runs; %d of %d slow requests flagged, %d right, %d wrong, %d abstained; %d of %d episodes found",
				p.named, f.Runs, f.Caught, f.Slow, f.Right, f.Wrong, f.Abstained, f.Found, f.True),
			p.named == f.Runs && f.Wrong == 0)
	}
	for _, name := range []string{scenario.DecayPath, scenario.DecayHost} {
		p := by[name]
		if p == nil {
			continue
		}
		met := true
		for i := range p.erodedAt {
			met = met && p.erodedAt[i] >= 0 && p.slowAt[i] > p.erodedAt[i]
		}
		f := &p.by[ours]
		add(name, "eroded first, then slow", fmt.Sprintf("eroded after requests %v, an episode after %v; %d right, %d wrong, %d abstained",
			p.erodedAt, p.slowAt, f.Right, f.Wrong, f.Abstained), met && f.Wrong == 0)
	}
}

func part(a, b int) float64 { return float64(a) / float64(max(1, b)) }

func value(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

func number(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *x)
}

// met says whether every target is.
func (r *report) met() (missed int) {
	for _, list := range [][]target{r.Targets, r.Shows} {
		for _, t := range list {
			if !t.Met {
				missed++
			}
		}
	}
	return missed
}

func yes(met bool) string {
	if met {
		return "met"
	}
	return "**not met**"
}

var kinds = map[string]string{
	scenario.KindFault: "a path or a peer", scenario.KindHost: "this host, or all legs", scenario.KindLoad: "load",
	scenario.KindMix: "what is asked for", scenario.KindCalm: "nothing slow",
}

func kindName(k string) string { return cmp.Or(kinds[k], k) }
