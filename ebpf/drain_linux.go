package ebpf

import (
	"errors"
	"os"
	"time"
)

// past is a deadline that has expired: reading takes what is in the ring and
// returns. The programs wake nobody (BPF_RB_NO_WAKEUP): a wake-up per event
// cost 7.6% of an engine's token rate, a look every 100 ms nothing measurable.
var past = time.Unix(1, 0)

// Drain appends the events since the last call. Call it every 100 ms, and
// sooner where RingExchanges would come in that time. At most one ring's worth
// is taken in a call, so a flood cannot keep it busy. Malformed events are
// counted and left out. Not being available is not an error.
func (p *Probes) Drain(into *Events) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ring == nil {
		return nil
	}
	p.clock.Measure()
	for budget := p.ring.BufferSize(); budget > 0; budget -= ringHeader + len(p.record.RawSample) {
		err := p.ring.ReadInto(&p.record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := decode(p.record.RawSample, p.wall, into); err != nil {
			p.losses.Malformed++
		}
	}
	return nil
}

// RingExchanges is how many exchanges a ring of DefaultRingBytes holds.
const RingExchanges = DefaultRingBytes / (ringHeader + exchangeEvent)

// ringHeader is the space of a record's header, BPF_RINGBUF_HDR_SZ.
const ringHeader = 8

// wall maps a time of the kernel; an exchange that was reported while it was
// open keeps the time it was reported with.
func (p *Probes) wall(socket, mono uint64) int64 {
	if ns, ok := p.first.find(socket, mono); ok {
		return ns
	}
	return p.clock.Wall(mono)
}
