package spec

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"grayfail/internal/strictyaml"
	"grayfail/lab/campaign/report"
)

// Version of the format that this package reads.
const Version = 1

// Spec is one campaign.
type Spec struct {
	Version  int    `yaml:"version"`
	Name     string `yaml:"name"`
	Question string `yaml:"question"`
	// OrderSeed shuffles the conditions inside each block.
	OrderSeed uint64 `yaml:"order_seed"`
	// Warmup requests come first, under no condition, and are not recorded.
	Warmup int `yaml:"warmup"`
	// Blocks of all conditions, each with Repeats runs in a row.
	Blocks  int `yaml:"blocks"`
	Repeats int `yaml:"repeats"`
	// Concurrency is how many requests are in flight at once in a run.
	Concurrency int      `yaml:"concurrency"`
	Timeout     Duration `yaml:"timeout"`
	// Exporter is where the verdicts on the requests are read, for example
	// http://127.0.0.1:10550; "" asks none.
	Exporter   string      `yaml:"exporter"`
	Request    Request     `yaml:"request"`
	Rule       Rule        `yaml:"rule"`
	Criteria   []Criterion `yaml:"criteria"`
	Conditions []Condition `yaml:"conditions"`

	// Hash of the file's bytes.
	Hash string `yaml:"-"`
}

// Request is what each run sends: HTTP or a command.
type Request struct {
	// URL takes Body by POST, or by GET where Body is empty. An answer with
	// timings (llama.cpp) or usage (OpenAI) gives a rate.
	URL  string `yaml:"url"`
	Body string `yaml:"body"`
	// Command is run whole; what it prints is read as llama-cli's output.
	Command []string `yaml:"command"`
}

// Rule is how runs are judged.
type Rule struct {
	Measure   report.Measure `yaml:"measure"`
	SlowBelow float64        `yaml:"slow_below"`
	Control   string         `yaml:"control"`
}

// Criterion is a claim about a rank correlation, registered beforehand.
type Criterion struct {
	Condition   string          `yaml:"condition"`
	Evidence    report.Evidence `yaml:"evidence"`
	Op          string          `yaml:"op"`
	Rho         float64         `yaml:"rho"`
	MinRequests int             `yaml:"min_requests"`
}

// Condition is what a run is made under: at most one of Netem, TBF,
// DropPercent, Pause and Apply; none of them is no fault at all.
type Condition struct {
	Name string `yaml:"name"`
	// Netns is a name under /run/netns, "" our own; Device an interface in it.
	Netns  string `yaml:"netns"`
	Device string `yaml:"device"`
	// Netem and TBF are the arguments of tc qdisc add ... root netem|tbf.
	Netem []string `yaml:"netem"`
	TBF   []string `yaml:"tbf"`
	// CountNetns is the namespace whose TCP retransmits are counted: that of the
	// sender whose segments are impaired. Default: Netns.
	CountNetns string `yaml:"count_netns"`
	// DropPercent of what arrives at the device, by nftables.
	DropPercent float64 `yaml:"drop_percent"`
	// Pause stops a process for part of the time.
	Pause Pause `yaml:"pause"`
	// Apply and Clear are commands of your own; Counter prints a number that
	// moves while it acts.
	Apply   []string `yaml:"apply"`
	Clear   []string `yaml:"clear"`
	Counter []string `yaml:"counter"`
}

// Pause of a process: stopped for Percent of each Period.
type Pause struct {
	PID     int      `yaml:"pid"`
	Percent float64  `yaml:"percent"`
	Period  Duration `yaml:"period"`
}

// Duration as Prometheus writes it: 500ms, 2m.
type Duration time.Duration

// UnmarshalText takes a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := model.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 500ms or 2m", text)
	}
	*d = Duration(v)
	return nil
}

// Parse reads a specification. The error joins every problem.
func Parse(data []byte) (*Spec, error) {
	s := &Spec{
		OrderSeed: 1, Blocks: 10, Repeats: 3, Concurrency: 1, Timeout: Duration(2 * time.Minute),
		Rule: Rule{Measure: report.Decode, SlowBelow: 0.5},
	}
	lines, err := strictyaml.Decode(data, s)
	if err != nil {
		return nil, err
	}
	s.Hash = fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	if err := errors.Join(s.check(lines)...); err != nil {
		return nil, err
	}
	return s, nil
}

// Kind names how the condition is made; "" is no fault.
func (c *Condition) Kind() string {
	switch {
	case len(c.Netem) > 0:
		return "netem"
	case len(c.TBF) > 0:
		return "tbf"
	case c.DropPercent > 0:
		return "nftables"
	case c.Pause != (Pause{}):
		return "pause"
	case len(c.Apply) > 0:
		return "commands"
	}
	return ""
}

// Planned is the number of requests.
func (s *Spec) Planned() int { return s.Blocks * len(s.Conditions) * s.Repeats * s.Concurrency }
