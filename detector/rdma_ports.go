package detector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"grayfail/event"
)

// fabric keeps how far the counters of RDMA ports moved that say that the fast
// path had to do something again. Where a leg's payload runs over RDMA there is
// no exchange to clock: these are its witnesses.
type fabric struct {
	ports    map[rdmaPort]*portSteps
	overflow uint64
}

// rdmaPort is a port of a device.
type rdmaPort struct {
	device string
	port   int
}

func (p rdmaPort) String() string { return fmt.Sprintf("%s/%d", p.device, p.port) }

func (p rdmaPort) compare(q rdmaPort) int {
	return cmp.Or(cmp.Compare(p.device, q.device), cmp.Compare(p.port, q.port))
}

// portSteps is one port whose counters have moved.
type portSteps struct {
	counters []portCounter // steps count by their places
	steps    []portStep    // ordered by toNS
	// usual is what accepted phases show: retries, and the seconds in which
	// they would have been counted.
	usualRetries, usualSeconds float64
}

type portCounter struct {
	name    string
	meaning event.RDMAMeaning
}

// portStep is what moved between two readings.
type portStep struct {
	fromNS, toNS int64
	counts       [maxPortCounters]uint32
}

const (
	// maxRDMAPorts: the largest hosts have 16 devices of 2 ports.
	maxRDMAPorts = 64
	// maxPortCounters: drivers have 3 to 8 counters of retries.
	maxPortCounters = 12
	// maxPortSteps at one reading a second reach back beyond the longest
	// request timeout.
	maxPortSteps = 256
	// portIdle is when a port whose counters move no more makes room.
	portIdle = 10 * time.Minute
	// usualSpan is how many seconds of accepted phases are weighed alike.
	usualSpan = 1800.0
)

// add takes one step. One that comes twice counts once.
func (f *fabric) add(s *event.RDMAStep) {
	if !s.Meaning.Retries() || s.Count == 0 || s.FromNS <= 0 || s.TimeNS < s.FromNS {
		return
	}
	key := rdmaPort{s.Device, s.Port}
	p := f.ports[key]
	if p == nil {
		if len(f.ports) >= maxRDMAPorts && !f.makeRoom(s.TimeNS) {
			f.overflow++
			return
		}
		if f.ports == nil {
			f.ports = make(map[rdmaPort]*portSteps)
		}
		p = &portSteps{}
		f.ports[key] = p
	}
	at := slices.IndexFunc(p.counters, func(c portCounter) bool { return c.name == s.Event })
	if at < 0 {
		if len(p.counters) == maxPortCounters {
			f.overflow++
			return
		}
		at = len(p.counters)
		p.counters = append(p.counters, portCounter{s.Event, s.Meaning})
	}
	if step := p.step(s.FromNS, s.TimeNS); step != nil && step.counts[at] == 0 {
		step.counts[at] = uint32(min(s.Count, 1<<32-1))
	}
}

// step finds or makes the step of two readings; nil for one that is older than
// all that is kept.
func (p *portSteps) step(fromNS, toNS int64) *portStep {
	i := len(p.steps)
	for i > 0 && (p.steps[i-1].toNS > toNS || p.steps[i-1].toNS == toNS && p.steps[i-1].fromNS > fromNS) {
		i--
	}
	if i > 0 && p.steps[i-1].toNS == toNS && p.steps[i-1].fromNS == fromNS {
		return &p.steps[i-1]
	}
	if len(p.steps) == maxPortSteps {
		if i == 0 {
			return nil
		}
		p.steps = slices.Delete(p.steps, 0, 1)
		i--
	}
	p.steps = slices.Insert(p.steps, i, portStep{fromNS: fromNS, toNS: toNS})
	return &p.steps[i]
}

// makeRoom forgets the ports whose counters stand still.
func (f *fabric) makeRoom(nowNS int64) bool {
	before := len(f.ports)
	for key, p := range f.ports {
		if n := len(p.steps); n == 0 || p.steps[n-1].toNS < nowNS-int64(portIdle) {
			delete(f.ports, key)
		}
	}
	return len(f.ports) < before
}

// retries is what one port shows in a window.
type retries struct {
	counts [maxPortCounters]uint64
	// worst is the largest of them: what one loss does moves several counters,
	// so they are never summed. gaveUp counts requesters that did.
	worst, gaveUp uint64
	// seconds in which a retry would have been counted: the window, and the
	// readings that reach beyond it.
	seconds float64
}

// during counts the steps that touch from..to.
func (p *portSteps) during(fromNS, toNS int64) retries {
	r := retries{seconds: span(fromNS, toNS)}
	for i := len(p.steps) - 1; i >= 0 && p.steps[i].toNS > fromNS; i-- {
		s := &p.steps[i]
		if s.fromNS >= toNS {
			continue
		}
		for k := range p.counters {
			r.counts[k] += uint64(s.counts[k])
		}
	}
	if n := len(p.steps); n > 0 {
		r.seconds += span(p.steps[n-1].fromNS, p.steps[n-1].toNS)
	}
	for k, c := range p.counters {
		r.worst = max(r.worst, r.counts[k])
		if c.meaning == event.RDMARetryExceeded {
			r.gaveUp += r.counts[k]
		}
	}
	return r
}

// learn takes an accepted phase: whatever retries it has seen did not make it
// slow.
func (f *fabric) learn(fromNS, toNS int64) {
	for _, p := range f.ports {
		r := p.during(fromNS, toNS)
		p.usualRetries += float64(r.worst)
		p.usualSeconds += r.seconds
		if p.usualSeconds > usualSpan {
			p.usualRetries, p.usualSeconds = p.usualRetries/2, p.usualSeconds/2
		}
	}
}

// unusual is how many times as many retries as accepted phases have make them
// a witness.
const unusual = 3

// beyond is the retries beyond what is usual there; 0 for none, or nearly as
// many as ever.
func (p *portSteps) beyond(r *retries) float64 {
	expected := 0.0
	if p.usualSeconds > 0 {
		expected = p.usualRetries / p.usualSeconds * r.seconds
	}
	if worst := float64(r.worst); worst > unusual*expected {
		return worst - expected
	}
	return 0
}

// words lists the counters that moved, the largest first.
func (p *portSteps) words(r *retries) string {
	order := make([]int, 0, len(p.counters))
	for k := range p.counters {
		if r.counts[k] > 0 {
			order = append(order, k)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.counts[b], r.counts[a]), cmp.Compare(p.counters[a].name, p.counters[b].name))
	})
	parts := make([]string, 0, len(order))
	for _, k := range order {
		parts = append(parts, fmt.Sprintf("%d %s", r.counts[k], p.counters[k].name))
	}
	return strings.Join(parts, ", ")
}
