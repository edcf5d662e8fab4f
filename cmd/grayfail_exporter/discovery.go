package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"grayfail/collector/legs"
	"grayfail/collector/netns"
	"grayfail/collector/sockdiag"
	"grayfail/event"
)

// discoverEvery: all connections of a host are many.
const discoverEvery = 5 * time.Second

// discovery finds legs by the name of a process or by an RDMA address. One
// goroutine uses it.
type discovery struct {
	config func() *config
	survey *sockdiag.Survey
	finder *legs.Finder
	random [2]uint16
	every  time.Duration

	lookedNS int64
	found    legs.Found
	problems []event.Problem
}

func newDiscovery(config func() *config, every time.Duration) *discovery {
	random, _ := readPortRange("/proc/sys/net/ipv4/ip_local_port_range") // else the finder's default
	return &discovery{
		config: config, survey: sockdiag.NewSurvey(sockdiag.Options{}), finder: legs.NewFinder(legs.FinderConfig{}), random: random, every: every,
	}
}

// readPortRange reads "32768\t60999\n"; that of our own namespace stands for
// all.
func readPortRange(path string) (low [2]uint16, err error) {
	b, err := os.ReadFile(path)
	if err == nil {
		_, err = fmt.Sscan(string(b), &low[0], &low[1])
	}
	return low, err
}

// look looks if it is time; r is the last reading of the RDMA devices, nil for
// none.
func (d *discovery) look(nowNS int64, spaces []netns.Namespace, r *event.RDMA) (legs.Found, []event.Problem) {
	discover := d.config().Legs.Discover
	d.finder.SetConfig(legs.FinderConfig{Processes: discover.Processes, RDMAAddresses: discover.RDMAAddresses, ChosenPorts: d.random})
	gids := gidsOf(r)
	connections, owners := d.finder.Wants(gids)
	if age := nowNS - d.lookedNS; d.lookedNS != 0 && age >= 0 && age < int64(d.every) {
		return d.found, d.problems
	}
	d.lookedNS, d.problems = nowNS, nil
	var list []event.TCPSocket
	if connections {
		list, d.problems = d.survey.Collect(nowNS, spaces, owners)
	}
	before := d.finder.Overflow()
	d.found = d.finder.Look(nowNS, list, gids)
	if n := d.finder.Overflow() - before; n > 0 {
		d.problems = append(d.problems, event.Problem{Reason: "discover_overflow",
			Detail: fmt.Sprintf("legs.discover: %d connections beyond the bound are not looked at; name fewer processes, or switch rdma_addresses off", n)})
	}
	return d.found, d.problems
}

// gidsOf are the addresses that are GIDs of this host; link-local ones mean
// nothing without their netdev.
func gidsOf(r *event.RDMA) map[netip.Addr]bool {
	gids := make(map[netip.Addr]bool)
	if r == nil {
		return gids
	}
	for i := range r.Ports {
		for _, g := range r.Ports[i].GIDs {
			if a := g.Addr.Unmap(); a.IsGlobalUnicast() {
				gids[a] = true
			}
		}
	}
	return gids
}

// merged are the ports of both, each once.
func merged(a, b []uint16) []uint16 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
