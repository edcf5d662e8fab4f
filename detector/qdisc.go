package detector

import "grayfail/event"

// drops keeps how many packets the queues of each leg's device dropped
// between two readings.
type drops struct {
	queues []queueReadings
}

// queueReadings is one qdisc of one device that a leg uses.
type queueReadings struct {
	netns, device, handle string
	lastNS                int64
	packets, drops        uint64
	steps                 []dropStep
}

// dropStep is what happened between two readings.
type dropStep struct {
	fromNS, toNS   int64
	packets, drops uint64
}

const (
	maxQueues    = 1024
	maxDropSteps = 128
)

// read takes one reading. Only what came since the last one counts, and a
// counter that fell was reset.
func (d *drops) read(q *event.Qdisc) {
	var at *queueReadings
	for i := range d.queues {
		if r := &d.queues[i]; r.device == q.Device && r.handle == q.Handle && r.netns == q.Netns {
			at = r
		}
	}
	if at == nil {
		if len(d.queues) < maxQueues {
			d.queues = append(d.queues, queueReadings{netns: q.Netns, device: q.Device, handle: q.Handle, lastNS: q.TimeNS, packets: q.Packets, drops: q.Drops})
		}
		return
	}
	if q.TimeNS <= at.lastNS {
		return // late or repeated
	}
	if q.Packets >= at.packets && q.Drops >= at.drops {
		if len(at.steps) == maxDropSteps {
			copy(at.steps, at.steps[1:])
			at.steps = at.steps[:maxDropSteps-1]
		}
		at.steps = append(at.steps, dropStep{at.lastNS, q.TimeNS, q.Packets - at.packets, q.Drops - at.drops})
	}
	at.lastNS, at.packets, at.drops = q.TimeNS, q.Packets, q.Drops
}

// during returns packets and drops of the device's worst queue in the steps
// that touch from..to. Root and child count the same packets, so queues are
// never summed. known is false when there is no reading.
func (d *drops) during(netns, device string, fromNS, toNS int64) (packets, dropped uint64, known bool) {
	for i := range d.queues {
		q := &d.queues[i]
		if q.device != device || q.netns != netns {
			continue
		}
		var p, n uint64
		for j := len(q.steps) - 1; j >= 0 && q.steps[j].toNS > fromNS; j-- {
			if s := &q.steps[j]; s.fromNS < toNS {
				p, n, known = p+s.packets, n+s.drops, true
			}
		}
		if n > dropped || (n == dropped && p > packets) {
			packets, dropped = p, n
		}
	}
	return packets, dropped, known
}
