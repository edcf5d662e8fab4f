package join

import (
	"slices"

	"grayfail/event"
)

// maxShown bounds the queue pairs that a leg shows.
const maxShown = 64

// owner is a process on a port.
type owner struct {
	pid int
	place
}

// count is what a process has on a port.
type count struct {
	// ready is in RTS.
	ready int
	// shared: one that serves any number of peers is in RTS.
	shared bool
	// maybe: one may carry data although it is not in RTS (a responder in RTR).
	maybe bool
}

// pairs is one list of queue pairs.
type pairs struct {
	listedNS int64 // 0: they are not listed
	unlisted map[string]bool
	byPID    map[int][]event.QueuePair
	counts   map[owner]count
	// processes has a queue pair of any process; strangers one whose process
	// is not known.
	processes, strangers map[place]bool
}

func indexPairs(r *event.RDMA) pairs {
	p := pairs{
		listedNS: r.QueuePairsNS, unlisted: make(map[string]bool),
		byPID: make(map[int][]event.QueuePair), counts: make(map[owner]count),
		processes: make(map[place]bool), strangers: make(map[place]bool),
	}
	for _, device := range r.Unlisted {
		p.unlisted[device] = true
	}
	for i := range r.QueuePairs {
		q := &r.QueuePairs[i]
		if !carriesData(q) {
			continue
		}
		at := place{q.Device, q.Port}
		p.processes[at] = true
		if q.PID == 0 {
			p.strangers[at] = true
			continue
		}
		p.byPID[q.PID] = append(p.byPID[q.PID], *q)
		who := owner{q.PID, at}
		c := p.counts[who]
		switch q.State {
		case "RTS":
			c.ready++
			c.shared = c.shared || !oneToOne(q)
		case "RTR", "SQD", "":
			c.maybe = true
		}
		p.counts[who] = c
	}
	return p
}

// carriesData leaves out those of the kernel and of management.
func carriesData(q *event.QueuePair) bool {
	switch q.Type {
	case "GSI", "SMI", "RAW_IPV6", "RAW_ETHERTYPE", "RAW_PACKET":
		return false
	}
	return q.KernelName == ""
}

// oneToOne: a connected queue pair has one peer. UD and a driver's own type
// (mlx5's DC) have many, XRC serves many processes.
func oneToOne(q *event.QueuePair) bool { return q.Type == "RC" || q.Type == "UC" }

// nearest is the port among several that hold an address on which the process
// has a queue pair, else the first.
func (p *pairs) nearest(pid int, at homes) place {
	for _, h := range at {
		if c := p.counts[owner{pid, h}]; pid != 0 && c.ready > 0 {
			return h
		}
	}
	return at[0]
}

// of are the queue pairs of a process on the device of a port: what is on that
// port first, then other ports and none.
func (p *pairs) of(pid int, at place) []event.QueuePair {
	if pid == 0 {
		return nil
	}
	var here, elsewhere []event.QueuePair
	for _, q := range p.byPID[pid] {
		switch {
		case q.Device != at.device:
		case q.Port == at.port:
			here = append(here, q)
		default:
			elsewhere = append(elsewhere, q)
		}
	}
	all := slices.Concat(here, elsewhere)
	return all[:min(len(all), maxShown)]
}

// has says whether a process has a queue pair in RTS that any of those asked
// for: a port of 0 is any port, a device of "" any device.
func (p *pairs) has(pid int, device string, port int) bool {
	for who, c := range p.counts {
		if who.pid == pid && c.ready > 0 && (device == "" || who.device == device) && (port == 0 || who.port == port) {
			return true
		}
	}
	return false
}
