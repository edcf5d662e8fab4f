package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"grayfail/event"
)

// TestLegsByProcess: a leg of a process that the configuration names, at a
// port that it does not.
func TestLegsByProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	look := func(process string) map[string]any {
		t.Helper()
		file := writeFile(t, fmt.Sprintf("legs: {discover: {ports: [], processes: [%q]}}", process))
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"legs", "--json", "--wait", "1ms", "--config.file", file}, &out, &errs); code != exitOK {
			t.Fatalf("exit %d: %s", code, &errs)
		}
		var doc struct{ Legs []map[string]any }
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		for _, leg := range doc.Legs {
			if leg["leg"] == l.Addr().String() {
				return leg
			}
		}
		return nil
	}
	if leg := look(strings.TrimSpace(string(comm))); leg == nil || leg["pid"] != float64(os.Getpid()) || leg["role"] != "client" {
		t.Errorf("by its name: %v", leg)
	}
	if leg := look("no-such-process"); leg != nil {
		t.Errorf("by another name: %v", leg)
	}
}

func TestGIDsOf(t *testing.T) {
	r := &event.RDMA{Ports: []event.RDMAPort{{GIDs: []event.GID{
		{Addr: netip.MustParseAddr("::ffff:10.9.1.1")}, {Addr: netip.MustParseAddr("fe80::1")}, {Addr: netip.MustParseAddr("fd00::1")},
	}}}}
	got := gidsOf(r)
	if len(got) != 2 || !got[netip.MustParseAddr("10.9.1.1")] || !got[netip.MustParseAddr("fd00::1")] {
		t.Errorf("%v", got)
	}
	if got := gidsOf(nil); len(got) != 0 {
		t.Errorf("%v without a reading", got)
	}
}

// TestBusy: requests that follow each other without a pause that was seen are
// one time in flight.
func TestBusy(t *testing.T) {
	requests := 0
	b := busy{list: func() []event.InFlight { return []event.InFlight{{Requests: 0}, {Requests: requests}} }}
	for _, c := range []struct {
		at, requests int
		want         time.Duration
	}{{1, 0, 0}, {2, 1, 0}, {5, 3, 3}, {6, 0, 0}, {7, 1, 0}, {9, 1, 2}, {4, 1, 0}, {5, 1, 1}} {
		requests = c.requests
		if got := b.since(int64(c.at)); got != c.want {
			t.Errorf("at %d: %d, want %d", c.at, got, c.want)
		}
	}
}
