package join

import (
	"cmp"
	"net/netip"
	"slices"

	"grayfail/event"
)

// place is a port of a device.
type place struct {
	device string
	port   int
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.device, q.device), cmp.Compare(p.port, q.port))
}

// homes are the ports that hold one address, the likeliest first.
type homes []place

func (h homes) known() bool { return len(h) > 0 }

// devices tells the port of an address.
type devices struct {
	ports map[place]event.RDMAPort
	gids  map[netip.Addr][]entry
	// byNetdev are ports whose GIDs are no IP addresses.
	byNetdev map[string][]place
}

// entry is one GID of a port.
type entry struct {
	place
	netdev string
	kind   string // type of the GID
}

func indexDevices(ports []event.RDMAPort) devices {
	d := devices{
		ports:    make(map[place]event.RDMAPort, len(ports)),
		gids:     make(map[netip.Addr][]entry),
		byNetdev: make(map[string][]place),
	}
	for i := range ports {
		p := &ports[i]
		at := place{p.Device, p.Port}
		d.ports[at] = *p
		for _, g := range p.GIDs {
			a := plain(g.Addr)
			d.gids[a] = append(d.gids[a], entry{at, cmp.Or(g.Netdev, p.Netdev), g.Type})
		}
		if p.Netdev != "" && (p.LinkLayer == "InfiniBand" || p.Protocol == "iw") {
			d.byNetdev[p.Netdev] = append(d.byNetdev[p.Netdev], at)
		}
	}
	return d
}

// plain is an address as it stands in a GID table.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// home finds the ports that hold a local address. Of entries on several
// netdevs, those of the leg's own count; in another network namespace nothing
// else does, since it may use the same address over again.
//
// A GID of InfiniBand or iWARP is made of a GUID or a MAC address: there the
// leg's netdev tells the port.
func (d *devices) home(addr netip.Addr, leg *event.Leg) homes {
	var same, others homes
	for _, e := range d.gids[plain(addr)] {
		switch {
		case leg.Device != "" && e.netdev == leg.Device:
			same = append(same, e.place)
		case leg.Netns == "" || e.netdev == "" || leg.Device == "":
			others = append(others, e.place)
		}
	}
	if leg.Device != "" {
		same = append(same, d.byNetdev[leg.Device]...)
	}
	if len(same) > 0 {
		others = same
	}
	slices.SortFunc(others, func(a, b place) int {
		if x, y := d.ports[a].Active, d.ports[b].Active; x != y {
			if x {
				return -1
			}
			return 1
		}
		return a.compare(b)
	})
	return slices.Compact(others)
}

// maybeHome says whether the address may be a GID of a port whose table could
// not be read. The netdevs tell that it is not, where both are known.
func (d *devices) maybeHome(leg *event.Leg) bool {
	for _, p := range d.ports {
		if !p.GIDsRead && (p.Netdev == "" || leg.Device == "" || p.Netdev == leg.Device) {
			return true
		}
	}
	return false
}

// roceV1Only says whether an address is a GID of RoCE v1 alone there.
func (d *devices) roceV1Only(at place, addr netip.Addr) bool {
	v1 := false
	for _, e := range d.gids[plain(addr)] {
		if e.place != at {
			continue
		}
		if e.kind != "IB/RoCE v1" {
			return false
		}
		v1 = true
	}
	return v1 && d.ports[at].LinkLayer == "Ethernet"
}
