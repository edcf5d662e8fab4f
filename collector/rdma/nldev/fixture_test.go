package nldev

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// split cuts raw bytes into netlink messages, without the one that ends a
// dump. What is left over is dropped.
func split(b []byte) []netlink.Message {
	var msgs []netlink.Message
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(b)+3) &^ 3
		var m netlink.Message
		if size < unix.NLMSG_HDRLEN || size > len(b) || m.UnmarshalBinary(b[:size]) != nil {
			break
		}
		if m.Header.Type != netlink.Done {
			msgs = append(msgs, m)
		}
		b = b[size:]
	}
	return msgs
}

func fixture(t testing.TB, name string) []netlink.Message {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return split(b)
}

func check[T any](t *testing.T, file string, parse func([]netlink.Message) (T, error), want T) {
	t.Helper()
	got, err := parse(fixture(t, file))
	if err != nil {
		t.Errorf("%s: %v", file, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", file, got, want)
	}
}

// Answers of Debian's 6.1 kernel, captured by the guest tests. PIDs and GUIDs
// are those of that run.
func TestFixtures(t *testing.T) {
	rxe, two := Handle{2, "rxe0"}, Handle{3, "twoport0"}
	check(t, "6.1-rxe/get.nl", ParseDevices, []Device{{
		Handle: rxe, Ports: 1, NodeGUID: 0x6419d5fffe170821, SysImageGUID: 0x6419d5fffe170821, NodeType: NodeCA, Protocol: "roce",
	}})
	check(t, "6.1-twoport/get.nl", ParseDevices, []Device{{
		Handle: two, Ports: 2, NodeGUID: 0x0200000000000001, NodeType: NodeCA, Protocol: "roce",
	}})
	rxePort := Port{Device: rxe, Port: 1, State: PortActive, PhysState: 5, NetdevIndex: 7, Netdev: "ve1"}
	check(t, "6.1-rxe/port_get.nl", ParsePorts, []Port{rxePort})
	check(t, "6.1-rxe/port_get_1.nl", ParsePorts, []Port{rxePort})
	up := Port{Device: two, Port: 1, State: PortActive, PhysState: 5, NetdevIndex: 8, Netdev: "tp1"}
	down := Port{Device: two, Port: 2, State: PortDown, PhysState: 3, NetdevIndex: 9, Netdev: "tp2"}
	check(t, "6.1-twoport/port_get.nl", ParsePorts, []Port{up, down})
	check(t, "6.1-twoport/port_get_2.nl", ParsePorts, []Port{down})
	check(t, "6.1-rxe/res_qp_get.nl", ParseQueuePairs, []QueuePair{
		{Device: rxe, LQPN: 17, Type: TypeRC, State: StateReset, PID: 167, PDN: 1},
		{Device: rxe, Port: 1, LQPN: 18, Type: TypeRC, State: StateInit, PID: 167, PDN: 1},
		{Device: rxe, Port: 1, LQPN: 19, RQPN: 77, Type: TypeRC, State: StateRTS, PID: 167, PDN: 1, SendPSN: 200, ReceivePSN: 100},
		{Device: rxe, Port: 1, LQPN: 20, RQPN: 78, Type: TypeRC, State: StateErr, PID: 167, PDN: 1, SendPSN: 200, ReceivePSN: 100},
		{Device: rxe, Port: 1, LQPN: 1, Type: TypeGSI, State: StateRTS, KernelName: "ib_core"},
	})
	// Another thread of the same process registered it.
	check(t, "6.1-rxe/res_mr_get.nl", ParseMemoryRegions, []MemoryRegion{{Device: rxe, Bytes: 1 << 20, PID: 171, PDN: 1}})
	check(t, "6.1-twoport/res_mr_get.nl", ParseMemoryRegions, nil)
	check(t, "6.1-rxe/sys_get.nl", ParseSystem, System{SharedNetns: true})
	check(t, "6.1-rxe/res_get.nl", ParseResources, Resources{"qp": 5, "cq": 2, "mr": 1, "pd": 2, "cm_id": 0, "ctx": 1, "srq": 0})
	check(t, "6.1-twoport/stat_get_2.nl", ParseCounters, PortCounters{Device: two, Port: 2, Counters: []Counter{
		{"out_of_sequence", 5}, {"packet_seq_err", 6}, {"local_ack_timeout_err", 7}, {"rnr_nak_retry_err", 1 << 40},
	}})
}

// Owners in another PID namespace have no PID, and GSI has neither peer nor
// PID but the kernel's name.
func TestFixtureOfAnotherPIDNamespace(t *testing.T) {
	pairs, err := ParseQueuePairs(fixture(t, "6.1-rxe/res_qp_get_pidns.nl"))
	if err != nil || len(pairs) != 2 {
		t.Fatalf("%+v, %v", pairs, err)
	}
	for _, q := range pairs {
		switch {
		case q.Type == TypeRC && q.State == StateRTS && q.PID == 0 && q.KernelName == "" && q.RQPN == 77:
		case q.Type == TypeGSI && q.State == StateRTS && q.PID == 0 && q.KernelName == "ib_core" && q.RQPN == 0:
		default:
			t.Errorf("%+v", q)
		}
	}
}
