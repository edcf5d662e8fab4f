package export

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"grayfail/event"
)

func TestVerdictsStartAtZeroForBothPhases(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Row(event.Row{Source: "main", Model: "qwen", Phase: event.PhaseDecode, Verdict: event.VerdictUnknown, Rate: ptr(40)})
	wantSamples(t, reg, []string{"request_verdicts_total"}, map[string]float64{
		`request_verdicts_total{model="qwen",phase="decode",source="main",verdict="ok"}`:       0,
		`request_verdicts_total{model="qwen",phase="decode",source="main",verdict="slow"}`:     0,
		`request_verdicts_total{model="qwen",phase="decode",source="main",verdict="unknown"}`:  1,
		`request_verdicts_total{model="qwen",phase="prefill",source="main",verdict="ok"}`:      0,
		`request_verdicts_total{model="qwen",phase="prefill",source="main",verdict="slow"}`:    0,
		`request_verdicts_total{model="qwen",phase="prefill",source="main",verdict="unknown"}`: 0,
	})
}

func TestRequestIsCountedByOutcome(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Request(event.Request{Source: "main", Model: "qwen", Outcome: event.OutcomeOK, StartNS: startNS, FirstTokenNS: startNS + second/4, EndNS: startNS + 2*second})
	m.Request(event.Request{Source: "main", Model: "qwen", Outcome: event.OutcomeTimeout, StartNS: startNS, EndNS: startNS + 180*second})
	// The client left: how long it waited is not the engine's doing.
	m.Request(event.Request{Source: "main", Model: "qwen", Outcome: event.OutcomeCanceled, StartNS: startNS, FirstTokenNS: startNS + second/2, EndNS: startNS + second})
	m.Request(event.Request{Source: "main", Model: "qwen", Outcome: event.OutcomeOK}) // times not known
	wantSamples(t, reg, []string{"requests_total", "request_duration_seconds", "request_time_to_first_token_seconds"}, map[string]float64{
		`requests_total{model="qwen",outcome="ok",source="main"}`:               2,
		`requests_total{model="qwen",outcome="error",source="main"}`:            0,
		`requests_total{model="qwen",outcome="timeout",source="main"}`:          1,
		`requests_total{model="qwen",outcome="canceled",source="main"}`:         1,
		`request_duration_seconds_count{model="qwen",source="main"}`:            2,
		`request_duration_seconds_sum{model="qwen",source="main"}`:              182,
		`request_time_to_first_token_seconds_count{model="qwen",source="main"}`: 2,
		`request_time_to_first_token_seconds_sum{model="qwen",source="main"}`:   0.75,
	})
}

func TestHalfIsAnExactBoundaryAndCarriesTheRequest(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	below, above := math.Nextafter(0.5, 0), math.Nextafter(0.5, 1)
	for id, r := range map[string]float64{"below": below, "above": above} {
		m.Row(event.Row{ID: id, Source: "s", Model: "m", Phase: event.PhaseDecode, Verdict: event.VerdictOK, R: &r})
	}
	h := family(t, reg, "request_normalized_rate").GetMetric()[0].GetHistogram()
	if got := h.GetSampleCount(); got != 2 {
		t.Fatalf("count %d, want 2", got)
	}
	found := 0
	for i, b := range h.GetBucket() {
		if b.GetUpperBound() != 0.5 {
			continue
		}
		found++
		if b.GetCumulativeCount() != 1 {
			t.Errorf("le=0.5 holds %d, want 1: only what is below", b.GetCumulativeCount())
		}
		for bucket, want := range map[int]string{i: "below", i + 1: "above"} {
			labels := h.GetBucket()[bucket].GetExemplar().GetLabel()
			if len(labels) != 1 || labels[0].GetName() != "request_id" || labels[0].GetValue() != want {
				t.Errorf("bucket %d has exemplar %v, want request_id=%s", bucket, labels, want)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d buckets with bound 0.5, want 1", found)
	}
}

func TestRowWithoutRatesObservesNothing(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Row(event.Row{ID: "x", Source: "s", Model: "m", Phase: event.PhaseDecode, Verdict: event.VerdictUnknown})
	m.Row(event.Row{ID: "x", Source: "s", Model: "m", Phase: event.PhaseDecode, Verdict: event.VerdictOK, Rate: ptr(math.NaN()), R: ptr(math.Inf(1))})
	got := samples(t, reg, "request_tokens_per_second", "request_normalized_rate")
	if len(got) != 8 {
		t.Errorf("%d samples, want 8", len(got))
	}
	for name, v := range got {
		if v != 0 {
			t.Errorf("%s = %v, want 0", name, v)
		}
	}
}

func TestExcessGoesToTheLegThatAteIt(t *testing.T) {
	rows := map[string]struct {
		row  event.Row
		want map[string]float64
	}{
		"named leg": {
			slowRow(),
			map[string]float64{
				`{cause="loss",leg="rpc-b"`: 1.3835, `{cause="unattributed",leg="rpc-a"`: 0.0043, `{cause="local",leg=""`: 0.0018,
			},
		},
		"local, a leg below zero by noise": {
			event.Row{Cause: event.CauseLocal, ExcessMS: 990, LegsMS: map[string]float64{"rpc-a": -10}, LocalMS: 1000},
			map[string]float64{`{cause="local",leg=""`: 1},
		},
		"common cause": {
			event.Row{Cause: event.CauseCommon, ExcessMS: 1000, LegsMS: map[string]float64{"rpc-a": 500, "rpc-b": 600}, LocalMS: -100},
			map[string]float64{`{cause="common_cause",leg="rpc-a"`: 0.5, `{cause="common_cause",leg="rpc-b"`: 0.6},
		},
		"unattributed": {
			event.Row{Cause: event.CauseUnattributed, ExcessMS: 300, LegsMS: map[string]float64{"rpc-a": 100}, LocalMS: 200},
			map[string]float64{`{cause="unattributed",leg="rpc-a"`: 0.1, `{cause="local",leg=""`: 0.2},
		},
		"a cause that is none of ours": {
			event.Row{Cause: "gremlins", ExcessMS: 100, LegsMS: map[string]float64{"rpc-a": 100}, Leg: "rpc-a"},
			map[string]float64{`{cause="unattributed",leg="rpc-a"`: 0.1},
		},
		"no number": {
			event.Row{Cause: event.CauseLoss, LegsMS: map[string]float64{"rpc-a": math.NaN()}, LocalMS: math.Inf(1), Leg: "rpc-a"},
			map[string]float64{},
		},
	}
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			m, reg := newMetrics(t, Options{})
			c.row.Source, c.row.Model, c.row.Phase, c.row.Verdict = "main", "qwen", event.PhaseDecode, event.VerdictSlow
			m.Row(c.row)
			want := make(map[string]float64)
			for labels, v := range c.want {
				want["slow_excess_seconds_total"+labels+`,model="qwen",source="main"}`] = v
			}
			wantSamples(t, reg, []string{"slow_excess_seconds_total"}, want)
		})
	}
}

func TestExcessOfAFirstSlowRequestIsARise(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Row(okRow())
	s := fullSnapshot()
	s.Legs = s.Legs[:1]
	m.Publish(s)
	before := samples(t, reg, "slow_excess_seconds_total")
	want := 1 // local
	for _, c := range event.Causes {
		if c.NamesPath() {
			want++
		}
	}
	if len(before) != want {
		t.Errorf("%d series before anything was slow, want %d: %v", len(before), want, before)
	}
	const name = `slow_excess_seconds_total{cause="loss",leg="rpc-b",model="qwen",source="main"}`
	if v, ok := before[name]; !ok || v != 0 {
		t.Errorf("%s = %v (there: %v), want 0", name, v, ok)
	}
}

func TestEpisodesAreCountedWhenTheyOpen(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.EpisodeOpened(event.Episode{Source: "main", Model: "qwen", Phase: event.PhaseDecode, Cause: event.CauseDelay, Leg: "rpc-b"})
	want := make(map[string]float64)
	for _, c := range event.Causes {
		want[fmt.Sprintf(`episodes_total{cause=%q,model="qwen",source="main"}`, c)] = 0
	}
	want[`episodes_total{cause="delay",model="qwen",source="main"}`] = 1
	wantSamples(t, reg, []string{"episodes_total"}, want)
}

func TestModelsAreBounded(t *testing.T) {
	m, reg := newMetrics(t, Options{MaxModels: 2})
	for i := range 5 {
		m.Request(event.Request{Source: "push", Model: fmt.Sprint("m", i), Outcome: event.OutcomeOK})
	}
	m.Request(event.Request{Source: "push", Model: "m1", Outcome: event.OutcomeOK})
	got := samples(t, reg, "requests_total", "series_overflow_total")
	for name, want := range map[string]float64{
		`requests_total{model="m0",outcome="ok",source="push"}`:    1,
		`requests_total{model="m1",outcome="ok",source="push"}`:    2,
		`requests_total{model="other",outcome="ok",source="push"}`: 3,
		`series_overflow_total`:                                    3,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if want := 3*len(event.Outcomes) + 1; len(got) != want {
		t.Errorf("%d samples, want %d", len(got), want)
	}
}

func TestPairsAreBounded(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	for source := range 20 {
		for model := range 70 {
			m.Request(event.Request{Source: fmt.Sprint("s", source), Model: fmt.Sprint("m", model), Outcome: event.OutcomeOK})
		}
	}
	got := samples(t, reg, "requests_total")
	if most := (maxPairs + 1) * len(event.Outcomes); len(got) > most {
		t.Errorf("%d series, want at most %d", len(got), most)
	}
	var sum float64
	for _, v := range got {
		sum += v
	}
	if sum != 20*70 {
		t.Errorf("%v requests counted, want %d: what does not fit goes to other", sum, 20*70)
	}
	if samples(t, reg)["series_overflow_total"] == 0 {
		t.Error("overflow is not counted")
	}
}

func TestExcessSeriesAreBounded(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	const legs, pairs = 200, 30
	for p := range pairs {
		for l := range legs {
			r := slowRow()
			r.Model = fmt.Sprint("m", p)
			r.Leg = fmt.Sprint("leg-", l)
			r.LegsMS, r.LocalMS = map[string]float64{r.Leg: 1000}, 0
			m.Row(r)
		}
	}
	got := samples(t, reg, "slow_excess_seconds_total")
	if most := maxExcessSeries + pairs*len(event.Causes); len(got) > most || len(got) < maxExcessSeries {
		t.Errorf("%d series, want %d to %d", len(got), maxExcessSeries, most)
	}
	var sum float64
	for _, v := range got {
		sum += v
	}
	if math.Abs(sum-legs*pairs) > 1e-6 {
		t.Errorf("%v seconds counted, want %d", sum, legs*pairs)
	}
}

var hostile = []string{
	"", "a\nb", "a\x00b", "\x1b[31mred\x1b[0m", "\xff\xfe\xfd", strings.Repeat("x", 10_000),
	strings.Repeat("é", 10_000), "\u202Egnp.exe", "a\u2028b", `quote"back\slash`, "other", "{leg=\"x\"} 1\n# TYPE",
	"\u0085", "a\r\nHTTP/1.1 200 OK", strings.Repeat("\xc3", 300), "日本語モデル",
}

func TestHostileNamesCannotBreakAScrape(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	feedHostile(m)
	text := scrape(t, reg)
	if !utf8.ValidString(text) {
		t.Error("scrape is not valid UTF-8")
	}
	checkMetrics(t, text)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, series := range f.GetMetric() {
			for _, l := range series.GetLabel() {
				if v := l.GetValue(); utf8.RuneCountInString(v) > maxLabelRunes || clean(v, maxLabelRunes) != v {
					t.Errorf("%s: label %s=%q is not clean", f.GetName(), l.GetName(), v)
				}
			}
		}
	}
}

// feedHostile puts every hostile text everywhere a name may come from outside.
func feedHostile(m *Metrics) {
	s := &event.Snapshot{TimeNS: startNS}
	for _, h := range hostile {
		m.Request(event.Request{ID: h, Source: h, Model: h, Outcome: event.OutcomeOK})
		m.Row(event.Row{
			ID: h, Source: h, Model: h, Phase: event.PhaseDecode, Verdict: event.VerdictSlow, R: ptr(0.2), Rate: ptr(1),
			Leg: h, Cause: event.Cause(h), LegsMS: map[string]float64{h: 1}, Detail: h,
		})
		m.Row(event.Row{Source: h, Model: h, Phase: event.Phase(h), Verdict: event.Verdict(h)})
		m.EpisodeOpened(event.Episode{Source: h, Model: h, Phase: event.Phase(h), Cause: event.Cause(h), Leg: h})
		m.Exchange(&event.Exchange{Leg: h, Duration: 1, ReplyBytes: 1})
		m.Retransmit(&event.Retransmit{Leg: h, Kind: event.RetransmitRTO})
		m.Retransmit(&event.Retransmit{Leg: h, Kind: event.RetransmitKind(h)})
		m.Connection(&event.Connection{Leg: h, StartNS: 1, EndNS: 2, Established: true})
		s.Legs = append(s.Legs, event.Leg{Name: h, Netns: h, Device: h, RDMADevice: h, Transport: event.Transport(h), Reason: h, RTT: 1},
			event.Leg{Name: "fb" + h, Transport: event.TransportFallback, Reason: h})
		s.Qdiscs = append(s.Qdiscs, event.Qdisc{Netns: h, Device: h, Kind: h, Handle: h, Parent: h})
		s.Baselines = append(s.Baselines, event.Baseline{Source: h, Model: h, Phase: event.Phase(h), Concurrency: h, State: event.BaselineState(h), Rate: math.Inf(1)})
		s.Episodes = append(s.Episodes, event.Episode{Source: h, Model: h, Phase: event.Phase(h), Cause: event.Cause(h), Leg: h})
		s.Correlations = append(s.Correlations, event.Correlation{Model: h, Leg: h, Evidence: h, Rho: math.NaN()}, event.Correlation{Model: h, Leg: h, Evidence: h})
		s.Statuses = append(s.Statuses, event.Status{Collector: h, Availability: event.Failed, Problems: []event.Problem{{Reason: h, Detail: h}, {Reason: h}}})
		s.InFlight = append(s.InFlight, event.InFlight{Source: h, Model: h, Requests: 1})
	}
	m.Publish(s)
}

func TestExemplarsFit(t *testing.T) {
	for _, id := range hostile {
		labels := exemplar(id)
		runes := 0
		for name, v := range labels {
			runes += utf8.RuneCountInString(name) + utf8.RuneCountInString(v)
		}
		if len(labels) != 1 || runes > prometheus.ExemplarMaxRunes {
			t.Errorf("exemplar of %.20q has %d labels, %d runes", id, len(labels), runes)
		}
	}
}

func FuzzExemplar(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "H.", Buckets: []float64{1}})
	f.Fuzz(func(_ *testing.T, id string) {
		observeWithID(h, 0.5, id) // panics where the exemplar is not allowed
	})
}
