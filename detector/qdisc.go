package detector

import (
	"slices"
	"time"

	"grayfail/event"
)

// drops keeps how many packets the queues of each leg's device dropped
// between two readings.
type drops struct {
	queues   map[queueKey]*queueReadings
	byDevice map[deviceKey][]*queueReadings
	overflow uint64
}

type deviceKey struct{ netns, device string }

// queueKey tells the queues of a device apart. The handle alone does not: the
// children that the kernel gives a multiqueue root all have handle 0, and a
// device may have an egress and an ingress qdisc of one handle.
type queueKey struct {
	deviceKey
	parent, kind, handle string
}

// queueReadings is one qdisc of one device that a leg uses.
type queueReadings struct {
	key            queueKey
	lastNS         int64
	packets, drops uint64
	steps          []dropStep
}

// dropStep is what happened between two readings.
type dropStep struct {
	fromNS, toNS   int64
	packets, drops uint64
}

const (
	maxQueues    = 1024
	maxDropSteps = 128
	// queueIdle is when a queue whose counters move no more makes room for
	// another. No request that is judged reaches further back.
	queueIdle = 10 * time.Minute
)

// read takes one reading. Only what came since the last one counts, and a
// counter that fell was reset.
func (d *drops) read(q *event.Qdisc) {
	key := queueKey{deviceKey{q.Netns, q.Device}, q.Parent, q.Kind, q.Handle}
	at := d.queues[key]
	if at == nil {
		if len(d.queues) >= maxQueues && !d.makeRoom(q.TimeNS) {
			d.overflow++
			return
		}
		if d.queues == nil {
			d.queues, d.byDevice = make(map[queueKey]*queueReadings), make(map[deviceKey][]*queueReadings)
		}
		at = &queueReadings{key: key, lastNS: q.TimeNS, packets: q.Packets, drops: q.Drops}
		d.queues[key] = at
		d.byDevice[key.deviceKey] = append(d.byDevice[key.deviceKey], at)
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

// makeRoom forgets the queues that were not read for queueIdle.
func (d *drops) makeRoom(nowNS int64) bool {
	room := false
	for key, q := range d.queues {
		if q.lastNS > nowNS-int64(queueIdle) {
			continue
		}
		room = true
		delete(d.queues, key)
		rest := slices.DeleteFunc(d.byDevice[key.deviceKey], func(o *queueReadings) bool { return o == q })
		if len(rest) == 0 {
			delete(d.byDevice, key.deviceKey)
			continue
		}
		d.byDevice[key.deviceKey] = rest
	}
	return room
}

// during returns packets and drops of the device's worst queue in the steps
// that touch from..to. Root and child count the same packets, so queues are
// never summed. known is false when there is no reading.
func (d *drops) during(netns, device string, fromNS, toNS int64) (packets, dropped uint64, known bool) {
	for _, q := range d.byDevice[deviceKey{netns, device}] {
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
