package report

import (
	"fmt"
	"strings"
)

// page is a Markdown text in the making.
type page struct{ strings.Builder }

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// section begins one; a text of several paragraphs or a table follows.
func (p *page) section(title string, text ...string) {
	p.say("\n## %s\n", title)
	p.WriteString(strings.Join(text, "\n"))
}

// Markdown is the report that a person would publish. drawings are the names of
// files beside it.
func (r *Results) Markdown(drawings ...string) []byte {
	var p page
	m := &r.Method
	p.say("# %s", orElse(m.Name, "Campaign"))
	if m.Question != "" {
		p.section("Question", m.Question, "")
	}
	p.section("Method", "Fixed before the first run:\n", "")
	r.method(&p)
	p.section("Results", r.mainTable(), "")
	r.legend(&p)
	for _, d := range drawings {
		p.say("\n![%s](%s)", altText(d), d)
	}
	if c := r.criteria(); c != "" {
		p.section("Criteria", c)
	}
	if m.Control != "" {
		p.section("Normalized by block", fmt.Sprintf("Each figure by the median of `%s` in its own block; 1 is as good as the control, smaller is worse.\n", m.Control), r.normalizedTable())
	}
	if len(r.Correlations) > 0 {
		p.section("Association inside a condition", "Spearman's rank correlation of what the kernel counted during a request with the normalized figure. "+
			"It says what goes together, not what causes what; where it was not registered as a criterion it is exploration.\n", r.correlationTable())
	}
	r.timeouts(&p)
	if r.anySlow() {
		p.section("What the exporter said about slow requests", r.namingTable())
	}
	p.section("Deviations", "")
	r.deviations(&p)
	p.section("Limits", "")
	r.limits(&p)
	return []byte(p.String())
}

func (r *Results) method(p *page) {
	m := &r.Method
	p.say("- specification `%s`: its hash is in every record", m.SpecHash)
	order := fmt.Sprintf("- order: shuffled in advance from seed %d", m.OrderSeed)
	if m.Blocks > 0 {
		order += fmt.Sprintf(", in %d blocks", m.Blocks)
	}
	p.say("%s; every valid run is kept", order)
	p.say("- figure: `%s` of each request", m.Measure)
	if m.SlowBelow > 0 {
		p.say("- below %.2f of the block's control counts as slow by the plain rule, beside the exporter's verdict", m.SlowBelow)
	}
	for _, d := range m.Details {
		p.say("- %s", oneLine(d)) // a command may be of several lines
	}
	for _, c := range m.Criteria {
		p.say("- criterion: %s, judged from %d requests on", c, c.fewest())
	}
}

func (r *Results) legend(p *page) {
	tail := "p10 is the 10th percentile"
	if r.Method.Measure == Latency {
		tail = "p90 is the 90th percentile"
	}
	p.say("%s by nearest rank. Slow is the exporter's verdict; a request that failed counts as slow too. Unjudged: the exporter had no baseline yet. "+
		"Invalid runs are part of no figure.", tail)
}

func (r *Results) anySlow() bool {
	for _, n := range r.Naming {
		if n.Slow > 0 {
			return true
		}
	}
	return false
}

// timeouts answers the question for each condition with slow requests in words.
func (r *Results) timeouts(p *page) {
	var words []string
	for _, t := range r.Timeouts {
		slow, fast := t.Slow.With+t.Slow.Without, t.Fast.With+t.Fast.Without
		if slow > 0 {
			words = append(words, fmt.Sprintf("- %s: %s slow requests hold a retransmission timeout, and %s fast ones", t.Condition, of(t.Slow.With, slow), of(t.Fast.With, fast)))
		}
	}
	if len(words) > 0 {
		p.section("Retransmission timeouts", strings.Join(words, "\n"), "", r.timeoutTable())
	}
}

func (r *Results) deviations(p *page) {
	before := p.Len()
	m := &r.Method
	if m.Planned > r.Made {
		p.say("- %d of %d planned runs were not made: the campaign is not complete", m.Planned-r.Made, m.Planned)
	}
	if r.Cut {
		p.say("- the last record was cut off while it was written, and is left out")
	}
	for _, i := range r.Invalid {
		for _, reason := range i.Reasons {
			p.say("- %s: %s invalid: %s", i.Condition, plural(reason.Count, "run"), oneLine(reason.Name))
		}
	}
	for _, n := range r.Normalized {
		if n.WithoutBlock > 0 {
			p.say("- %s: %s without a valid control run in the same block, not normalized", n.Condition, plural(n.WithoutBlock, "request"))
		}
	}
	for _, l := range r.Table {
		if l.Requests == 0 {
			p.say("- %s: no valid run", l.Condition)
		}
	}
	if p.Len() == before {
		p.say("None: every planned run is there and valid.")
	}
}

func (r *Results) limits(p *page) {
	p.say("- One machine or cluster, one engine, one request: the figures are of this setting.")
	p.say("- p-values are two-sided, from %d permutations drawn from the order seed, and not corrected for how many there are.", permutations)
	if r.Method.Control != "" {
		p.say("- The control's own normalized figures spread only as far as a block holds several of its runs.")
	}
	p.say("- Counters are of the kernels that were read during the request; a timeout that nobody counted is not known.")
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return oneLine(s)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func altText(file string) string {
	if strings.HasPrefix(file, "ecdf") {
		return "empirical distribution of each condition"
	}
	return "every request of each condition"
}
