package main

import (
	"fmt"
	"io"
	"strings"
)

const method = `## Method

Three sources, each marked where it is used:

- **Generated** timelines (most of this page). A simulated engine with continuous batching runs over one to five legs. The exchanges of a token on each leg (sizes, duration, first byte, ACK, largest gap, RTT) and the time on no leg are drawn from recordings of the real llama.cpp RPC (` + "`noise`, `v070_loss5_fromB`" + ` in ` + "`detector/testdata/recordings`" + `): two generations of the protocol, chosen by the seed. What lost reply packets leave in an exchange (out-of-order segments, gaps with their backoff, late first bytes) and how often is drawn from the recordings of 5% loss. Delay adds to ACK, first byte and RTT as recorded with 50 ms; a rate limit stretches replies and leaves the RTT alone as recorded with 20 Mbit/s; a host short of CPU is stopped by the CFS controller's 100 ms periods; lost requests are repaired by fast retransmit, tail probe or timeout with the kernel's constants (` + "`TCP_RTO_MIN`" + ` 200 ms). Two requests at once run at 0.45, eight at 0.23 of the single rate, as measured.
  Assumed, not measured: a third more time a token at 4,096 tokens of context; a chunk of a prompt takes 1/8 of a decoded token's time for each of its tokens on top of one; a fifth of the noise's variance wanders.
- **Recorded** runs of the real engine: the last table, and the distributions above.
- **Live** runs are in [evaluation-live.md](evaluation-live.md) (` + "`make eval-live`" + `).

Prompts (8 to 800 tokens; 8 to 100 where several requests run at once) and answers (12 to 96) are of mixed length unless a scenario says otherwise. Noise of the log rate is 0.10, 0.15 or 0.20. The seed decides noise, legs, protocol and which leg is hit.

**Truth is measured**, never taken from a scenario's name: a request is slow if its rate is below half of the median of the requests of its stratum that no fault touched (where there are fewer than ten of them: of the same request without noise and fault). An episode is true if three of ten of those are slow, by the program's own definition. A reported episode counts if it overlaps a true one. Of a name both cause and leg must be right. Where the fault holds less than a quarter of the lost time, no path is to blame; from half on only the fault is; between them either answer is right. Naming nobody (unattributed; common_cause where a path is to blame) is abstaining: neither right nor wrong. In a slow decay the baseline is held at 0.9 of the anchor, by design: what runs between 0.45 and 0.5 of the control may be called slow or not.

**Everything is judged from the coordinator's view alone**: what only the worker's host can see is removed; with it, the rows must be the same.

**Thresholds are set on the even seeds, figures are of the odd ones.** Seconds count from the end of the third slow request to the turn of the pipeline that reports the episode; the two seconds that a verdict waits for late neighbours are in them. A request between 0.45 and 0.5 of the control may be above half of a baseline that is a few percent off; where one of those is the third, the report waits for the next slow one, however long that takes to come: hence the lines of requests surely slow.
`

func (r *report) markdown(w io.Writer) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	p("# Evaluation of the detector\n\nMade by `make eval`; do not edit. Generated timelines: %d scenarios, %d seeds each.\n\n", len(r.Scenarios), r.Seeds)
	if missed := r.met(); missed > 0 {
		p("**%d of %d targets are not met.**\n\n", missed, len(r.Targets)+len(r.Shows))
	} else {
		p("All %d targets are met.\n\n", len(r.Targets)+len(r.Shows))
	}
	p("## Targets\n\n| figure | target | value | |\n|---|---|---|---|\n")
	for _, t := range append(r.Targets, r.Shows...) {
		p("| %s | %s | %s | %s |\n", t.What, t.Target, t.Value, yes(t.Met))
	}
	p("\nPublished detectors, on their own data: precision 0.904 and F1 0.893 (Minder), localisation 97.2%% (Holmes), detection under 7 s (Panorama), a quarter of the faults missed by a sliding window (Greyhound).\n")

	p("\n## Methods side by side\n\nOdd seeds. The two windows are given the strata of concurrency; the two ways to name are given our verdicts, and the right cause where the leg is right. A dash: the method does not say.\n\n")
	p("| method | requests: precision | recall | F1 | episodes: precision | recall | named: right | wrong | abstained | paths named without a guilty one | slow requests until found: median, worst |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for m := range r.Methods {
		r.Methods[m].row(w, r.Methods[m].Method)
	}
	r.SetOn.row(w, "grayfail on the even seeds, for comparison")
	c := r.Methods[correlation]
	p("\nAsked every ten requests in scenarios without a guilty path, whatever was flagged, raw rank correlation (30 requests, p < 0.05) names one in %d of %d looks (%.0f%%).\n",
		c.AskedBlamed, c.Asked, 100*part(c.AskedBlamed, c.Asked))

	p("\n## Scenarios\n\nOdd seeds, of decode. Slow: by the measured rate, where a baseline can exist. Found within: slow requests until the episode was reported and seconds after the third, worst of all runs.\n\n")
	p("| scenario | to blame | requests | slow | flagged | precision | recall | F1 | episodes true / found | reported / confirmed | right | wrong | abstained | found within |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		within := "-"
		if s.DelayRequestsMax != nil {
			within = fmt.Sprintf("%.0f", *s.DelayRequestsMax)
			if s.DelaySecondsMax != nil {
				within += fmt.Sprintf(", %.1f s", *s.DelaySecondsMax)
			}
		}
		p("| %s | %s | %d | %d | %d | %s | %s | %s | %d / %d | %d / %d | %d | %d | %d | %s |\n", s.Name, kindName(s.Kind), s.Requests, s.Slow, s.Flagged,
			number(s.Precision), number(s.Recall), number(s.F1), s.True, s.Found, s.Reported, s.Confirmed, s.Right, s.Wrong, s.Abstained, within)
	}

	p("\nOf prefill, which has its own baselines: %d slow phases named a path, %d of them wrongly.\n", r.Methods[ours].PrefillRight+r.Methods[ours].PrefillWrong, r.Methods[ours].PrefillWrong)

	p("\n## Days without a fault\n\nGenerated: a request every ten seconds, answers of 12 to 211 tokens.\n\n| noise | series-days | requests | slow | most slow of ten | alarms | a day and series | paths named |\n|---|---|---|---|---|---|---|---|\n")
	for _, n := range r.Null {
		p("| %.2f | %d | %d | %d | %d | %d | %.3f | %d |\n", n.Sigma, n.SeriesDays, n.Requests, n.Slow, n.MostSlow, n.Alarms, n.PerDay, n.PathsNamed)
	}

	p("\n## Recorded\n\nThe real llama.cpp RPC over two workers, through `replay --json`, with and without the worker's lines.\n\n| recording | requests | slow | flagged | both | right | wrong | abstained | bounds |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, l := range r.Recordings {
		p("| %s | %d | %d | %d | %d | %d | %d | %d | %s |\n", l.Name, l.Requests, l.Slow, l.Found, l.Hits, l.Right, l.Wrong, l.Abstained, yes(l.Failures == 0))
	}
	p("\n%s", method)
}

func (m *methodReport) row(w io.Writer, name string) {
	named := [4]string{"-", "-", "-", "-"}
	if m.Right+m.Wrong+m.Abstained > 0 {
		named = [4]string{number(m.RightShare), number(m.WrongShare), number(m.AbstainedShare), fmt.Sprint(m.Innocent)}
	}
	until := "-"
	if m.DelayRequests != nil {
		until = fmt.Sprintf("%.0f, %.0f", *m.DelayRequests, *m.DelayRequestsMax)
	}
	fmt.Fprintf(w, "| %s |\n", strings.Join([]string{
		name, number(m.Precision), number(m.Recall), number(m.F1), number(m.EpisodePrecision), number(m.EpisodeRecall),
		named[0], named[1], named[2], named[3], until,
	}, " | "))
}
