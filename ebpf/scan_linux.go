package ebpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// Sockets leave the table when they close. Those whose closing was missed (the
// set_state program is not there, or was attached in between) leave it by age:
// after idleLimit, and after crowdedLimit while it is nearly full.
const (
	idleLimit    = time.Hour
	crowdedLimit = time.Minute
)

// scanner reads the socket table in batches; the buffers are reused.
type scanner struct {
	max    uint32
	keys   []uint64
	values [][socketStateBytes]byte
}

func newScanner(maxSockets uint32) scanner {
	return scanner{max: maxSockets, keys: make([]uint64, maxSockets), values: make([][socketStateBytes]byte, maxSockets)}
}

// read fills keys and values with the table and gives their number. It is one
// batch: a batch smaller than the table may not fit the table's fullest
// bucket, and then the kernel refuses it with ENOSPC.
func (s *scanner) read(table *ebpf.Map) (int, error) {
	var cursor ebpf.MapBatchCursor
	n, err := table.BatchLookup(&cursor, s.keys, s.values, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, fmt.Errorf("socket table: %w", err)
	}
	return n, nil
}

// limit is the age at which an idle socket is dropped, by how full the table is.
func (s *scanner) limit(n int) time.Duration {
	if n >= int(s.max)-int(s.max)/8 {
		return crowdedLimit
	}
	return idleLimit
}

// Open appends a look at every exchange that has not ended, with Open set. One
// without a reply byte lasts until now and has ReplyBytes 0: that is how a hung
// leg shows while it hangs. One whose reply has come ends at its last byte,
// and stays open until the next send: only then was that byte the last. A
// record with the same Flow.Socket and SendNS replaces an earlier one.
//
// It also drops what the table holds in vain, see Losses.Evicted.
func (p *Probes) Open(into *Events) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.maps == nil {
		return nil
	}
	table := p.maps[probesMapSockets]
	n, err := p.scan.read(table)
	if err != nil {
		return err
	}
	p.clock.Measure()
	now := p.clock.Monotonic()
	limit := p.scan.limit(n)
	p.first.begin()
	for i := range n {
		s, err := decodeSocket(p.scan.values[i][:], p.wall)
		if err != nil {
			return err
		}
		if p.forget(&s, now, limit) {
			if err := table.Delete(p.scan.keys[i]); err == nil {
				p.losses.Evicted++
			}
			s.exchange.Open = false // nothing will end it any more
		} else if s.send != 0 && s.clocked {
			p.first.keep(s.flow.Socket, s.send, s.exchange.SendNS)
			s.exchange.Open = true
		}
		if s.send == 0 || !s.clocked || s.torn {
			continue
		}
		if s.last == 0 {
			s.exchange.Duration = span(s.send, now)
		}
		into.Exchanges = append(into.Exchanges, s.exchange)
	}
	return nil
}

// forget says whether a socket's entry is in vain.
func (p *Probes) forget(s *socketState, now uint64, limit time.Duration) bool {
	port := s.flow.Peer.Port()
	if s.accepted {
		port = s.flow.Local.Port()
	}
	if !p.watched.has(port, s.flow.NetnsInode) {
		return true
	}
	return span(s.activity(), now) > limit
}
