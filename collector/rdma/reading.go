package rdma

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"grayfail/collector/rdma/nldev"
	"grayfail/event"
)

// reading is one Collect.
type reading struct {
	*Collector
	event.RDMA
	problems []event.Problem
	// fatal is the error that broke the connection: nothing more can be asked
	// for, and a half of the devices is not handed out as if it were all.
	fatal error
}

func (r *reading) collect() error {
	if err := r.connect(); err != nil {
		return err
	}
	devices, err := r.client.Devices()
	if err != nil && len(devices) == 0 {
		return err
	}
	r.failed("", err)
	if len(devices) > maxDevices {
		r.tell(ReasonOverflow, fmt.Sprintf("%d devices, %d are read", len(devices), maxDevices))
		devices = devices[:maxDevices]
	}
	r.readSlow(devices)
	if r.fatal != nil {
		return r.fatal
	}
	sys, err := fs.Sub(r.opts.sys, classDir)
	if err != nil {
		return err
	}
	if _, err := fs.Stat(sys, "."); err != nil && len(devices) > 0 {
		r.tell(ReasonNoSysfs, fmt.Sprintf("no GIDs, link layers and rates: %v", err))
	}
	for _, d := range devices {
		ports, err := r.client.Ports(d)
		r.failed(d.Name, err)
		for i := range ports {
			if len(r.Ports) == maxPorts {
				r.tell(ReasonOverflow, fmt.Sprintf("more than %d ports", maxPorts))
				return nil
			}
			r.port(sys, d, &ports[i])
		}
		if r.fatal != nil {
			return r.fatal
		}
	}
	return nil
}

// port reads what there is to know of one port.
func (r *reading) port(sys fs.FS, d nldev.Device, p *nldev.Port) {
	number := int(p.Port)
	f := files{fsys: sys, dir: portDir(d.Name, number)}
	layer := f.text("link_layer")
	table := r.slow.gids[portKey{d.Index, number}]
	out := event.RDMAPort{
		Device: d.Name, Port: number, Netdev: p.Netdev, LinkLayer: layer,
		Protocol: protocol(d.Protocol, layer, number),
		State:    p.State.String(), Active: p.State == nldev.PortActive,
		RateBytesPerSecond: value(&f, "rate", parseRate),
		GIDs:               table.gids, GIDsRead: table.read,
	}
	if p.State == nldev.PortNop {
		out.State = value(&f, "state", parseState)
		out.Active = out.State == nldev.PortActive.String()
	}
	if out.Netdev == "" {
		out.Netdev = netdevOf(table.gids)
	}
	r.Ports = append(r.Ports, out)
	r.counters(&f, d, number)
	r.unreadable(&f)
}

// protocol is that of a port: the kernel tells that of the first one, and a
// card may run InfiniBand on one port and Ethernet on the other.
func protocol(first, linkLayer string, port int) string {
	switch {
	case port == 1 || linkLayer == "":
		return first
	case linkLayer == "InfiniBand" && first != "opa":
		return "ib"
	case linkLayer == "Ethernet" && first == "ib":
		return "roce"
	}
	return first
}

// netdevOf is the netdev of a port whose netdev is in another network
// namespace: the one that all its GIDs name, else none.
func netdevOf(gids []event.GID) string {
	name := ""
	for _, g := range gids {
		switch {
		case g.Netdev == "" || g.Netdev == name:
		case name == "":
			name = g.Netdev
		default:
			return ""
		}
	}
	return name
}

func (r *reading) counters(f *files, d nldev.Device, port int) {
	pc, err := r.client.Counters(d.Index, uint32(port))
	var list []counter
	for _, c := range pc.Counters {
		list = append(list, counter{c.Name, c.Value})
	}
	if errors.Is(err, errors.ErrUnsupported) {
		// Kernels before 5.3 do not tell, and those after do not say whether
		// the driver has none.
		list, err = f.counters(), nil
	}
	r.failed(d.Name, err)
	if len(list) > maxCounters {
		r.tell(ReasonOverflow, fmt.Sprintf("%s port %d: %d counters, %d are kept", d.Name, port, len(list), maxCounters))
		list = list[:maxCounters]
	}
	for _, c := range list {
		r.Counters = append(r.Counters, event.RDMACounter{Device: d.Name, Port: port, Event: c.name, Value: c.value})
	}
}

// readSlow reads queue pairs and GID tables if their time has come, or if the
// devices have changed.
func (r *reading) readSlow(devices []nldev.Device) {
	handles := make([]nldev.Handle, len(devices))
	for i, d := range devices {
		handles[i] = d.Handle
	}
	s := &r.slow
	age := r.TimeNS - s.readNS
	if s.readNS == 0 || age < 0 || age >= int64(r.opts.Every) || !slices.Equal(handles, s.devices) {
		told := r.problems
		r.problems = nil
		*s = slow{readNS: r.TimeNS, devices: handles, gids: make(map[portKey]gidTable)}
		r.gids(devices)
		r.queuePairs(devices)
		s.problems, r.problems = r.problems, told
	}
	r.problems = append(r.problems, s.problems...)
	if !r.opts.NoQueuePairs {
		r.QueuePairs, r.QueuePairsNS, r.Unlisted = s.pairs, s.readNS, s.missing
	}
}

func (r *reading) gids(devices []nldev.Device) {
	sys, err := fs.Sub(r.opts.sys, classDir)
	if err != nil {
		return // the name is ours
	}
	for _, d := range devices {
		for port := 1; port <= int(min(d.Ports, 255)); port++ {
			f := files{fsys: sys, dir: portDir(d.Name, port)}
			var t gidTable
			t.gids, t.read = f.gids()
			r.slow.gids[portKey{d.Index, port}] = t
			r.unreadable(&f)
		}
	}
}

func (r *reading) queuePairs(devices []nldev.Device) {
	if r.opts.NoQueuePairs {
		if len(devices) > 0 {
			r.tell(ReasonOff, "queue pairs are switched off: whether a leg runs over RDMA cannot be told")
		}
		return
	}
	who := owners{proc: r.opts.proc, known: make(map[uint32]int)}
	for _, d := range devices {
		pairs, err := r.client.QueuePairs(d.Index)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			p := problem(d.Name, err)
			if p.Reason == ReasonFailed {
				p.Reason = ReasonQueuePairs
			}
			r.tell(p.Reason, p.Detail)
			if r.client.Broken() {
				r.fatal = err
				return
			}
		}
		if room := maxQueuePairs - len(r.slow.pairs); len(pairs) > room {
			r.tell(ReasonOverflow, fmt.Sprintf("%s: more than %d queue pairs in all, %d of %d are kept", d.Name, maxQueuePairs, room, len(pairs)))
			pairs, err = pairs[:room], errors.New("not all are kept")
		}
		if err != nil {
			r.slow.missing = append(r.slow.missing, d.Name)
		}
		for i := range pairs {
			q := &pairs[i]
			r.slow.pairs = append(r.slow.pairs, event.QueuePair{
				Device: d.Name, Port: int(q.Port), LQPN: q.LQPN, RQPN: q.RQPN,
				Type: q.Type.String(), State: q.State.String(),
				PID: who.process(q.PID), KernelName: q.KernelName, SendPSN: q.SendPSN,
			})
		}
	}
}

// failed notes an error about a device, unless it says that the device is
// gone.
func (r *reading) failed(device string, err error) {
	if err != nil && r.fatal == nil && r.client.Broken() {
		r.fatal = err
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p := problem(device, err)
		r.tell(p.Reason, p.Detail)
	}
}

// unreadable notes the files that could not be read: one problem a port.
func (r *reading) unreadable(f *files) {
	if len(f.bad) == 0 {
		return
	}
	detail := f.bad[0].Error()
	if more := len(f.bad) - 1; more > 0 {
		detail = fmt.Sprintf("%s, and %d more", detail, more)
	}
	r.tell(ReasonUnreadable, detail)
}

func (r *reading) tell(reason, detail string) {
	r.problems = append(r.problems, event.Problem{Reason: reason, Detail: detail})
}
