package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"grayfail/collector/legs"
	"grayfail/collector/netns"
	"grayfail/collector/qdisc"
	"grayfail/collector/rdma"
	"grayfail/collector/rdma/join"
	"grayfail/collector/sockdiag"
	"grayfail/event"
)

// sampler reads counters on its own ticker, never on a scrape. Each source has
// a goroutine of its own: one that hangs costs only itself.
type sampler struct {
	interval  time.Duration
	spaces    *netns.Set
	qdiscs    *qdisc.Collector
	sockets   *sockdiag.Collector
	rdma      *rdma.Collector
	judge     *join.Judge
	addresses *legs.AddressReader
	legs      *legs.Table
	pipe      *pipeline
	status    *statuses
	now       func() time.Time
	// ports are the watched ports now; watch hands ports and namespaces to BPF.
	ports     func() []uint16
	watch     func(ports []uint16, namespaces []uint32)
	discovery *discovery

	watched    atomic.Pointer[[]netns.Namespace]
	lastQdiscs atomic.Pointer[[]event.Qdisc]
	lastRDMA   atomic.Pointer[event.RDMA] // nil: not there, or not readable
	rdmaSteps  rdma.Steps
	written    map[qdiscKey][2]uint64 // packets and drops last handed on
}

type qdiscKey struct{ netns, device, handle, parent, kind string }

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context) {
	own, err := netns.Own()
	spaces := []netns.Namespace{own}
	if err != nil {
		spaces = nil // /proc is not mounted: the collectors say what that costs
	}
	s.watched.Store(&spaces)
	var wg sync.WaitGroup
	wg.Go(func() { s.every(ctx, s.sampleQdiscs) })
	wg.Go(func() { s.every(ctx, s.sampleSockets) })
	wg.Go(func() { s.every(ctx, s.sampleRDMA) })
	wg.Wait()
}

func (s *sampler) every(ctx context.Context, sample func()) {
	sample()
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			sample()
		}
	}
}

func (s *sampler) sampleQdiscs() {
	started := time.Now()
	list, problems, err := s.qdiscs.Collect(s.now().UnixNano(), *s.watched.Load())
	s.status.tried("qdisc", time.Since(started), 0, problems, asProblem(err))
	if err != nil && list == nil {
		return // the last reading stays; the failure shows in collector_up
	}
	s.lastQdiscs.Store(&list)
	// Only what moved is handed on: an idle qdisc says nothing new.
	moved := make(map[qdiscKey][2]uint64, len(list))
	for i := range list {
		q := &list[i]
		key := qdiscKey{q.Netns, q.Device, q.Handle, q.Parent, q.Kind}
		counts := [2]uint64{q.Packets, q.Drops}
		if s.written[key] != counts {
			s.pipe.submit(q)
		}
		moved[key] = counts
	}
	s.written = moved
}

// sampleSockets also finds the namespaces to watch: those named, and in auto
// mode those in which a watched socket turned up.
func (s *sampler) sampleSockets() {
	started := time.Now()
	now := s.now().UnixNano()
	look, problems := s.spaces.Look(now)
	ports := s.ports()
	found, unfound := s.discovery.look(now, look, s.lastRDMA.Load())
	problems = append(problems, unfound...)
	s.legs.SetFound(found)
	list, more, err := s.sockets.Collect(now, look, merged(ports, found.Ports()))
	// Without sockets the namespaces named are watched all the same: qdiscs and
	// the exchange clock need none.
	spaces := s.spaces.Adopt(netns.OwnersOf(list))
	s.watched.Store(&spaces)
	s.watch(merged(ports, found.Named), inodes(spaces))
	if err != nil {
		s.status.tried("tcp_sockets", time.Since(started), 0, append(problems, more...), asProblem(err))
		return
	}
	nets, unread := s.addresses.Read(now, spaces, s.sockets.Complete)
	s.status.tried("tcp_sockets", time.Since(started), 0, slices.Concat(problems, more, unread), nil)
	s.legs.Update(now, list, nets)
	for _, change := range s.legs.Changes() {
		s.pipe.submit(&change)
	}
}

func inodes(spaces []netns.Namespace) []uint32 {
	all := make([]uint32, 0, len(spaces))
	for _, ns := range spaces {
		all = append(all, ns.Inode)
	}
	return all
}

// sampleRDMA reads ports and counters each time; the collector itself keeps
// queue pairs to its slower pace.
func (s *sampler) sampleRDMA() {
	started := time.Now()
	reading, problems, err := s.rdma.Collect(s.now().UnixNano())
	if errors.Is(err, errors.ErrUnsupported) && len(problems) > 0 {
		s.status.tried("rdma", time.Since(started), 0, problems[1:], &problems[0])
	} else {
		s.status.tried("rdma", time.Since(started), 0, problems, asProblem(err))
	}
	switch {
	case err == nil:
		s.judge.Reading(reading)
		s.lastRDMA.Store(&reading)
		for _, step := range s.rdmaSteps.Next(&reading) {
			s.pipe.submit(&step)
		}
		return
	case errors.Is(err, errors.ErrUnsupported):
		s.judge.Reading(reading) // without ports: no leg can run over RDMA
	}
	s.lastRDMA.Store(nil)
}

func (s *sampler) currentQdiscs() []event.Qdisc {
	if list := s.lastQdiscs.Load(); list != nil {
		return *list
	}
	return nil
}

// close releases the sockets of the sources; call it after run has returned.
func (s *sampler) close() error {
	return errors.Join(s.qdiscs.Close(), s.sockets.Close(), s.discovery.survey.Close(), s.rdma.Close())
}
