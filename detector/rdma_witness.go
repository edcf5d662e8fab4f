package detector

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"grayfail/event"
)

// RDMA takes one step of a counter of an RDMA port.
func (d *Detector) RDMA(s event.RDMAStep) {
	if !d.ahead(s.TimeNS) {
		d.fabric.add(&s)
	}
}

// longestTimeout is how long a requester may wait before it sends again:
// 4.096 us * 2^20, which is NCCL's default (NCCL_IB_TIMEOUT); ggml's 2^14 is
// 67 ms. Retries that even so are too few for half of the lost time are no
// explanation.
const longestTimeout = 4300 * time.Millisecond

// fewRetries may be anything's: their neighbours decide.
const fewRetries = 3

// witnessPort is a port that legs run over, and what it shows in a window.
type witnessPort struct {
	rdmaPort
	*portSteps
	retries
	beyond float64
	legs   []*leg
}

// retriedPorts are the ports of legs on RDMA that had to do more again in the
// window than is usual there, the worst first.
func (d *Detector) retriedPorts(fromNS, toNS int64) []witnessPort {
	var out []witnessPort
	for _, l := range d.store.legs.all {
		steps := d.fabric.ports[l.rdma]
		if l.transport != event.TransportRDMA || steps == nil {
			continue
		}
		if i := slices.IndexFunc(out, func(p witnessPort) bool { return p.rdmaPort == l.rdma }); i >= 0 {
			out[i].legs = append(out[i].legs, l)
			continue
		}
		seen := steps.during(fromNS, toNS)
		if beyond := steps.beyond(&seen); beyond > 0 {
			out = append(out, witnessPort{l.rdma, steps, seen, beyond, []*leg{l}})
		}
	}
	slices.SortFunc(out, func(a, b witnessPort) int {
		if a.beyond != b.beyond {
			if a.beyond > b.beyond {
				return -1
			}
			return 1
		}
		return a.compare(b.rdmaPort)
	})
	return out
}

// overRDMA: the time is on no leg that is clocked, and the port of one leg on
// RDMA had to send again. The counters are those of a port: where two legs
// share it, or two ports retry, nobody is named.
func (d *Detector) overRDMA(row *event.Row, v *phaseView, l *ledger) (finding, bool) {
	if v.endNS <= v.startNS || len(d.fabric.ports) == 0 {
		return finding{}, false
	}
	failed := row.Outcome == event.OutcomeError || row.Outcome == event.OutcomeTimeout
	slow := (row.R == nil || *row.R < d.cfg.Threshold) && l.excess > 0 && l.local >= d.cfg.Cause.LocalShare*l.excess
	ports := d.retriedPorts(v.startNS, v.endNS)
	if len(ports) == 0 || !slow && !failed {
		return finding{}, false
	}
	first := &ports[0]
	gaveUp := failed && first.gaveUp > 0
	explains := slow && first.beyond*float64(longestTimeout) >= d.cfg.Cause.NameShare*l.excess
	if !gaveUp && !explains {
		return finding{}, false
	}
	detail := fmt.Sprintf("rdma: %s on port %s", first.words(&first.retries), first.rdmaPort)
	others := 0.0
	for i := range ports[1:] {
		others += ports[1+i].beyond
	}
	switch {
	case others >= d.cfg.Cause.ExamineShare*(first.beyond+others):
		second := &ports[1]
		return unattributed("%s, and %s on port %s: more than one path", detail, second.words(&second.retries), second.rdmaPort), true
	case len(first.legs) > 1:
		return unattributed("%s, which legs %s share", detail, legNames(first.legs)), true
	case first.legs[0].collective:
		return unattributed("%s, of legs beyond the table's bound", detail), true
	}
	f := finding{cause: event.CauseLoss, leg: first.legs[0].name, soft: first.worst < fewRetries}
	if gaveUp {
		f.cause, f.soft = event.CauseDeadPath, false
	}
	f.detail = detail
	if slow {
		f.detail += fmt.Sprintf(", whose exchanges are not seen: %.0f of %.0f ms on no leg", l.local/1e6, l.excess/1e6)
	}
	return f, true
}

func legNames(legs []*leg) string {
	names := make([]string, 0, len(legs))
	for _, l := range legs {
		names = append(names, l.name)
	}
	slices.Sort(names)
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// blind adds to a finding of local what it cannot know: a leg on RDMA has no
// exchanges, so that what it takes is on no leg.
func (d *Detector) blind(f finding) finding {
	if f.cause != event.CauseLocal {
		return f
	}
	n := 0
	for _, l := range d.store.legs.all {
		if l.transport == event.TransportRDMA {
			n++
		}
	}
	if n > 0 {
		f.detail += fmt.Sprintf("; legs over RDMA, whose exchanges are not seen: %d", n)
	}
	return f
}
