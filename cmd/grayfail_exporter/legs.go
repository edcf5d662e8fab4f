package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"grayfail/collector/legs"
	"grayfail/collector/netns"
	"grayfail/collector/rdma"
	"grayfail/collector/rdma/join"
	"grayfail/collector/sockdiag"
	"grayfail/event"
	"grayfail/export"
)

type legsFlags struct {
	json       bool
	wait       time.Duration
	configFile string
}

// legsCommand looks twice, wait apart, and prints every leg. Exit 0: all as
// expected (no leg is that too, and says so); 1: a leg is in trouble or
// against its expectation; 2: could not look.
func legsCommand(ctx context.Context, f legsFlags, stdout, stderr io.Writer) int {
	list, err := lookAtLegs(ctx, f, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "grayfail_exporter legs: %v\n", err)
		return exitUsage
	}
	if f.json {
		_, err = stdout.Write(export.LegsJSON(list))
	} else {
		err = printLegs(stdout, list)
	}
	if err != nil {
		fmt.Fprintf(stderr, "grayfail_exporter legs: %v\n", err)
		return exitUsage
	}
	for i := range list {
		if legInTrouble(&list[i]) {
			return exitFail
		}
	}
	return exitOK
}

// lookAtLegs returns an error only when nothing could be read; what one
// namespace could not give is named on stderr.
func lookAtLegs(ctx context.Context, f legsFlags, stderr io.Writer) ([]event.Leg, error) {
	cfg, err := loadConfig(f.configFile)
	if err != nil {
		return nil, err
	}
	set := netns.NewSet(spacesConfig(&cfg))
	sockets := sockdiag.New(sockdiag.Options{})
	defer sockets.Close()
	devices := rdma.New(rdma.Options{Every: time.Nanosecond, NoQueuePairs: !cfg.RDMA.QueuePairs}) // listed at both looks
	defer devices.Close()
	judge := newJudge(f.wait)
	tableConfig := legsTableConfig(&cfg, judge)
	tableConfig.Settling = f.wait // two looks are all there is
	table := legs.New(tableConfig)
	addresses := legs.NewAddressReader()
	find := newDiscovery(func() *config { return &cfg }, 0)
	defer find.survey.Close()
	for look := range 2 {
		if look > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(f.wait):
			}
		}
		now := time.Now().UnixNano()
		spaces, problems := set.Look(now)
		reading, unreadDevices := readDevices(devices, judge)
		found, unfound := find.look(now, spaces, reading)
		problems = slices.Concat(problems, unreadDevices, unfound)
		table.SetFound(found)
		list, more, err := sockets.Collect(now, spaces, merged(watchedPorts(&cfg), found.Ports()))
		if err != nil {
			return nil, err
		}
		watched := set.Adopt(netns.OwnersOf(list))
		nets, unread := addresses.Read(now, watched, sockets.Complete)
		table.Update(now, list, nets)
		if look > 0 {
			// Legs of one process are judged by what the others turned out to be.
			table.Update(now, list, nets)
			for _, p := range slices.Concat(problems, more, unread) {
				fmt.Fprintf(stderr, "grayfail_exporter legs: %s: %s\n", p.Reason, p.Detail)
			}
		}
	}
	return table.Legs(), nil
}

// readDevices hands a reading of the RDMA devices to the judge. A host without
// any is in order.
func readDevices(devices *rdma.Collector, judge *join.Judge) (*event.RDMA, []event.Problem) {
	reading, problems, err := devices.Collect(time.Now().UnixNano())
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, nil
	case err != nil:
		return nil, problems
	}
	judge.Reading(reading)
	return &reading, problems
}

// legInTrouble is the contract's exit 1.
func legInTrouble(l *event.Leg) bool {
	switch l.Transport {
	case event.TransportFallback, event.TransportQueued, event.TransportStalled,
		event.TransportHalfOpen, event.TransportDead:
		return true
	case event.TransportRDMA:
		return l.Expected == "tcp"
	case event.TransportTCP:
		return l.Expected == "rdma"
	case event.TransportUnknown:
		// One that is there and cannot be judged is not against anything.
		return l.Expected == "rdma" && l.Connections == 0
	}
	return false
}

func printLegs(w io.Writer, list []event.Leg) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no leg found: no process here has a socket on a watched port")
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "LEG\tROLE\tPEER\tDEVICE\tRDMA\tTRANSPORT\tEXPECTED\tRTT\tSOCKETS\tPROCESS\tREASON")
	for i := range list {
		l := &list[i]
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			l.Name, l.Role, peerText(l), orDash(l.Device), rdmaText(l), l.Transport, l.Expected,
			rttText(l.RTT), l.Connections, processText(l), orDash(reasonText(l)))
	}
	return tw.Flush()
}

func peerText(l *event.Leg) string {
	if l.Peer.Port() == 0 {
		return l.Peer.Addr().String()
	}
	return l.Peer.String()
}

func rttText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(time.Microsecond).String()
}

func processText(l *event.Leg) string {
	if l.PID == 0 {
		return orDash(l.Process)
	}
	return fmt.Sprintf("%s[%d]", l.Process, l.PID)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
