package board

// Level says how bad something is; it is a class name of the style sheet.
type Level string

const (
	Good Level = "good" // as it should be
	Wait Level = "wait" // too early to say
	Warn Level = "warn" // look at it today
	Bad  Level = "bad"  // look at it now
)

// Page is all that is shown. Text is ready for people; html/template escapes
// it. Lists are in the order of the page.
type Page struct {
	Version string
	AsOf    string // of the snapshot; "" before the first
	Head    []Headline
	Models  []Model
	Open    []Episode
	Past    []Episode
	Slow    []Request
	Legs    []Leg
	// Problems are what collectors cannot do; Working names the collectors
	// without one, Untried those that have not tried yet.
	Problems []Problem
	Working  []string
	Untried  []string
	// LegsHelp and ModelsHelp say how to get some, where there are none.
	LegsHelp, ModelsHelp string
}

// Title is the text of the tab: what is worst comes first.
func (p *Page) Title() string {
	if len(p.Head) == 0 {
		return "grayfail"
	}
	return p.Head[0].Text + " - grayfail"
}

// Headline is one thing that whoever was woken needs to know.
type Headline struct {
	Level Level
	Text  string
	// Facts say since when, how much and why, Next what to look at; Runbook
	// is the name of the page in alerts/runbooks, or "".
	Facts   []string
	Next    string
	Runbook string
}

// Model is one phase of one model from one source.
type Model struct {
	Source, Model, Phase string
	State, Detail        string // of the busiest baseline
	Level                Level
	Now, Baseline        string // tokens per second
	Plot                 Plot
}

// Episode is a run of slow requests.
type Episode struct {
	Level               Level
	Since, Until, Lasts string
	Model, Phase, Blame string
	Slow                string // "24 of 30"
	Lost                string // seconds, "" where no slow request is remembered
	Evidence            string // of its newest slow request
	Ledger              []Share
}

// Request is one slow phase of a request.
type Request struct {
	Time, Source, Model, Phase, ID string
	Rate, Baseline                 string
	Blame, Evidence, HTTP          string
	Lost                           string
	Ledger                         []Share
}

// Share is a part of lost time.
type Share struct {
	Name    string // of a leg, or "this host"
	Seconds string
	Percent float64 // of the whole, 0 to 100
	Named   bool    // the verdict names it
	Local   bool
}

// Leg is the way to one peer. Slow is the cause of an open episode that names
// it, or "".
type Leg struct {
	Level, TransportLevel                    Level
	Slow                                     string
	Name, Role, Peer, Netns, RDMA, Transport string
	Reason, RTT, Process, Connections        string
}

// Problem is what a collector cannot do.
type Problem struct {
	Collector, Reason, Detail string
	Down                      bool
}
