package nldev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mdlayher/netlink"
)

// many makes the answer to RES_QP_GET that n queue pairs like the captured one
// in RTS would give: datagrams of at most 32 KiB.
func many(tb testing.TB, n int) []netlink.Message {
	tb.Helper()
	var entry []byte
	var device []netlink.Attribute
	attrs, err := netlink.UnmarshalAttributes(fixture(tb, "6.1-rxe/res_qp_get.nl")[0].Data)
	if err != nil {
		tb.Fatal(err)
	}
	for _, a := range attrs {
		if a.Type != attrResQP {
			device = append(device, a)
			continue
		}
		entries, err := netlink.UnmarshalAttributes(a.Data)
		if err != nil {
			tb.Fatal(err)
		}
		entry = entries[2].Data // in RTS
	}
	at := -1 // of the number in the entry
	for off := 0; off < len(entry); off += int(binary.NativeEndian.Uint16(entry[off:])+3) &^ 3 {
		if binary.NativeEndian.Uint16(entry[off+2:]) == attrResLQPN {
			at = off + 4
		}
	}
	var msgs []netlink.Message
	var entries []netlink.Attribute
	flush := func() {
		nest, err := netlink.MarshalAttributes(entries)
		if err != nil {
			tb.Fatal(err)
		}
		b, err := netlink.MarshalAttributes(append(device[:len(device):len(device)], netlink.Attribute{Type: attrResQP, Data: nest}))
		if err != nil {
			tb.Fatal(err)
		}
		msgs = append(msgs, netlink.Message{Data: b})
		entries = nil
	}
	for i := range n {
		b := append([]byte(nil), entry...)
		binary.NativeEndian.PutUint32(b[at:], uint32(i+1000))
		entries = append(entries, netlink.Attribute{Type: attrResQPEntry, Data: b})
		if (len(entries)+1)*(len(entry)+4) > 32<<10 {
			flush()
		}
	}
	flush()
	return msgs
}

func TestParseManyQueuePairs(t *testing.T) {
	pairs, err := ParseQueuePairs(many(t, 10_000))
	if err != nil || len(pairs) != 10_000 {
		t.Fatalf("%d, %v", len(pairs), err)
	}
	if q := pairs[9_999]; q.LQPN != 10_999 || q.State != StateRTS || q.Device.Name != "rxe0" {
		t.Errorf("%+v", q)
	}
}

// 10,000 queue pairs are to take less than 50 ms.
func BenchmarkParseQueuePairs(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		msgs := many(b, n)
		b.Run(fmt.Sprintf("queue_pairs=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if pairs, err := ParseQueuePairs(msgs); err != nil || len(pairs) != n {
					b.Fatal(len(pairs), err)
				}
			}
		})
	}
}

// The cursor of a dump is a position: who comes and goes meanwhile makes it
// skip an entry or give it twice.
func TestDuplicates(t *testing.T) {
	first := netlink.Message{Data: queuePairPayload(t, 1, 2, 3)}
	second := netlink.Message{Data: queuePairPayload(t, 3, 4)}
	pairs, err := ParseQueuePairs([]netlink.Message{first, second})
	if err != nil || len(pairs) != 4 {
		t.Errorf("%+v, %v", pairs, err)
	}
}

// What cannot be read is named by its place and loses nothing else.
func TestBrokenEntries(t *testing.T) {
	entry := func(ae *netlink.AttributeEncoder, number any) {
		ae.Nested(attrResQPEntry, func(ae *netlink.AttributeEncoder) error {
			switch n := number.(type) {
			case uint32:
				ae.Uint32(attrResLQPN, n)
			case uint16:
				ae.Uint16(attrResLQPN, n)
			}
			return nil
		})
	}
	msg := netlink.Message{Data: payload(t, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(attrDevIndex, 4)
		ae.String(attrDevName, "a")
		ae.Nested(attrResQP, func(ae *netlink.AttributeEncoder) error {
			entry(ae, uint32(7))
			entry(ae, uint16(8)) // two bytes where four belong
			entry(ae, nil)       // no number
			entry(ae, uint32(9))
			return nil
		})
	})}
	pairs, err := ParseQueuePairs([]netlink.Message{{}, msg})
	if len(pairs) != 2 || pairs[0].LQPN != 7 || pairs[1].LQPN != 9 || pairs[1].Type != TypeUnknown || pairs[1].State != StateUnknown {
		t.Errorf("%+v", pairs)
	}
	for _, want := range []string{
		"message 0, entry 0: the table is missing", "message 1, entry 1: ", "message 1, entry 2: RES_LQPN is missing",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	var e *EntryError
	if !errors.As(err, &e) || e.Message != 0 {
		t.Errorf("%#v", e)
	}

	// A thousand broken entries do not make a thousand errors.
	var entries []netlink.Message
	for range 1000 {
		entries = append(entries, netlink.Message{})
	}
	if _, err := ParseQueuePairs(entries); len(err.Error()) > 2000 || !strings.Contains(err.Error(), "and 992 more") {
		t.Errorf("%d characters", len(err.Error()))
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		StateRTS.String(): "RTS", StateErr.String(): "ERR", QPState(9).String(): "9", StateUnknown.String(): "unknown",
		TypeRC.String(): "RC", TypeXRCTgt.String(): "XRC_TGT", TypeDriver.String(): "DRIVER", QPType(77).String(): "77",
		PortActive.String(): "ACTIVE", PortState(99).String(): "99",
		OpResQPGet.String(): "RES_QP_GET", Op(999).String(): "operation 999",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Whatever the bytes: no panic, names that are text, no number twice, and no
// error that grows with the input.
func FuzzParse(f *testing.F) {
	for _, name := range []string{
		"6.1-rxe/get.nl", "6.1-rxe/port_get.nl", "6.1-rxe/port_get_1.nl", "6.1-rxe/res_get.nl", "6.1-rxe/res_mr_get.nl",
		"6.1-rxe/res_qp_get.nl", "6.1-rxe/res_qp_get_pidns.nl", "6.1-rxe/stat_get_1.nl", "6.1-rxe/stat_get_no_port.nl", "6.1-rxe/sys_get.nl",
		"6.1-twoport/get.nl", "6.1-twoport/port_get.nl", "6.1-twoport/res_qp_get.nl", "6.1-twoport/stat_get_2.nl",
	} {
		for _, m := range fixture(f, name) {
			f.Add(m.Data, []byte(nil))
			f.Add(m.Data, m.Data)
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		msgs := []netlink.Message{{Data: first}, {Data: second}}
		var names []string
		var errs []error
		devices, err := ParseDevices(msgs)
		errs = append(errs, err)
		for _, d := range devices {
			names = append(names, d.Name, d.Firmware, d.Protocol)
		}
		ports, err := ParsePorts(msgs)
		errs = append(errs, err)
		for _, p := range ports {
			names = append(names, p.Device.Name, p.Netdev)
		}
		pairs, err := ParseQueuePairs(msgs)
		errs = append(errs, err)
		seen := make(map[uint32]bool)
		for _, q := range pairs {
			names = append(names, q.Device.Name, q.KernelName, q.Type.String(), q.State.String())
			if seen[q.LQPN] {
				t.Errorf("%d is listed twice", q.LQPN)
			}
			seen[q.LQPN] = true
		}
		regions, err := ParseMemoryRegions(msgs)
		errs = append(errs, err)
		for _, m := range regions {
			names = append(names, m.Device.Name, m.KernelName)
		}
		resources, err := ParseResources(msgs)
		errs = append(errs, err)
		for name := range resources {
			names = append(names, name)
		}
		counters, err := ParseCounters(msgs[:1])
		errs = append(errs, err)
		for _, c := range counters.Counters {
			names = append(names, c.Name)
		}
		_, err = ParseSystem(msgs[:1])
		errs = append(errs, err)
		for _, name := range names {
			if !utf8.ValidString(name) {
				t.Errorf("%q", name)
			}
		}
		for _, err := range errs {
			if err != nil && len(err.Error()) > 4000 {
				t.Errorf("an error of %d characters", len(err.Error()))
			}
		}
	})
}
