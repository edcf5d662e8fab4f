package qdisc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
	"grayfail/internal/testkit"
)

// TestFixtures: captured dumps against what tc said at the same moment.
func TestFixtures(t *testing.T) {
	for _, side := range []string{"a", "b"} {
		base := filepath.Join(fixtures, side)
		entries, err := Parse(testkit.ReadDump(t, base+"-qdisc.bin"))
		if err != nil {
			t.Fatal(err)
		}
		names, err := netns.ParseLinks(testkit.ReadDump(t, base+"-link.bin"))
		if err != nil {
			t.Fatal(err)
		}
		var got []event.Qdisc
		for _, e := range entries {
			e.Qdisc.Device = names[e.Ifindex]
			got = append(got, e.Qdisc)
		}
		doc, err := os.ReadFile(base + "-tc.json")
		if err != nil {
			t.Fatal(err)
		}
		if diff := differ(fromTC(t, doc), got); diff != "" {
			t.Errorf("%s (-tc +parsed):\n%s", side, diff)
		}
	}
}

// message crafts an RTM_NEWQDISC message.
func message(ifindex int, handle, parent uint32, attrs ...netlink.Attribute) netlink.Message {
	b := make([]byte, sizeofTcmsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(ifindex))
	binary.NativeEndian.PutUint32(b[8:], handle)
	binary.NativeEndian.PutUint32(b[12:], parent)
	return netlink.Message{
		Header: netlink.Header{Type: unix.RTM_NEWQDISC},
		Data:   append(b, nltest.MustMarshalAttributes(attrs)...),
	}
}

func kind(name string) netlink.Attribute {
	return netlink.Attribute{Type: unix.TCA_KIND, Data: append([]byte(name), 0)}
}

func nest(attrs ...netlink.Attribute) netlink.Attribute {
	return netlink.Attribute{Type: unix.TCA_STATS2, Data: nltest.MustMarshalAttributes(attrs)}
}

func u32s(v ...uint32) (b []byte) {
	for _, v := range v {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

func u64(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

// basic is struct gnet_stats_basic with the padding that kernels send.
func basic(bytes uint64, packets uint32) netlink.Attribute {
	return netlink.Attribute{Type: statsBasic, Data: append(u64(bytes), u32s(packets, 0)...)}
}

func pkt64(n uint64) netlink.Attribute { return netlink.Attribute{Type: statsPkt64, Data: u64(n)} }

func queue(qlen, backlog, drops, requeues, overlimits uint32) netlink.Attribute {
	return netlink.Attribute{Type: statsQueue, Data: u32s(qlen, backlog, drops, requeues, overlimits)}
}

// oldStats is struct tc_stats.
func oldStats(bytes uint64, packets, drops, overlimits, qlen, backlog uint32) netlink.Attribute {
	return netlink.Attribute{Type: unix.TCA_STATS, Data: append(u64(bytes), u32s(packets, drops, overlimits, 0, 0, qlen, backlog)...)}
}

func TestParseCrafted(t *testing.T) {
	const past32 = 5_000_000_000
	for _, tt := range []struct {
		name string
		msg  netlink.Message
		want event.Qdisc
	}{
		{
			"packets past 2^32, whose 32-bit counter has wrapped",
			message(3, 0x80010000, 0xFFFFFFFF, kind("tbf"), nest(basic(7_500_000_000_000, uint32(past32&0xFFFFFFFF)), pkt64(past32), queue(1, 2, 3, 4, 5))),
			event.Qdisc{Kind: "tbf", Handle: "8001:", Parent: "root", Bytes: 7_500_000_000_000, Packets: past32,
				QueuePackets: 1, BacklogBytes: 2, Drops: 3, Requeues: 4, Overlimits: 5},
		},
		{
			"the same, attributes the other way round, legacy numbers last",
			message(3, 0x80010000, 0xFFFFFFFF, nest(queue(1, 2, 3, 4, 5), pkt64(past32), basic(9, 1)), kind("tbf"), oldStats(1, 1, 1, 1, 1, 1)),
			event.Qdisc{Kind: "tbf", Handle: "8001:", Parent: "root", Bytes: 9, Packets: past32,
				QueuePackets: 1, BacklogBytes: 2, Drops: 3, Requeues: 4, Overlimits: 5},
		},
		{
			"a counter at its 32-bit end, no PKT64",
			message(3, 0x10000, 0xFFFFFFFF, kind("htb"), nest(basic(1, 0xFFFFFFFF), queue(0, 0, 0xFFFFFFFF, 0, 0))),
			event.Qdisc{Kind: "htb", Handle: "1:", Parent: "root", Bytes: 1, Packets: 0xFFFFFFFF, Drops: 0xFFFFFFFF},
		},
		{
			"legacy statistics only",
			message(3, 0x10000, 0x80010001, kind("pfifo"), oldStats(100, 5, 2, 3, 4, 60)),
			event.Qdisc{Kind: "pfifo", Handle: "1:", Parent: "8001:1", Bytes: 100, Packets: 5, Drops: 2, Overlimits: 3, QueuePackets: 4, BacklogBytes: 60},
		},
		{
			"legacy statistics before an empty nest: the nest rules",
			message(3, 0x10000, 0x80010001, kind("pfifo"), oldStats(100, 5, 2, 3, 4, 60), nest()),
			event.Qdisc{Kind: "pfifo", Handle: "1:", Parent: "8001:1"},
		},
		{
			"a kind nobody knows, with options nobody knows",
			message(3, 0xABCD0000, 0xFFFFFFFF, kind("zz_new"), netlink.Attribute{Type: unix.TCA_OPTIONS, Data: []byte{1, 2, 3}}, netlink.Attribute{Type: 999, Data: []byte{9}}, nest(basic(1, 2))),
			event.Qdisc{Kind: "zz_new", Handle: "abcd:", Parent: "root", Bytes: 1, Packets: 2},
		},
		{
			"no statistics at all",
			message(3, 0, 0x1, kind("fq_codel")),
			event.Qdisc{Kind: "fq_codel", Handle: "0:", Parent: ":1"},
		},
		{
			"a kind that is no UTF-8",
			message(3, 0, 0xFFFFFFFF, kind("a\xffb")),
			event.Qdisc{Kind: "a_b", Handle: "0:", Parent: "root"},
		},
		{
			"clsact", message(3, 0xFFFF0000, 0xFFFFFFF1, kind("clsact")),
			event.Qdisc{Kind: "clsact", Handle: "ffff:", Parent: "clsact"},
		},
		{
			"ingress", message(3, 0xFFFF0000, 0xFFFFFFF1, kind("ingress")),
			event.Qdisc{Kind: "ingress", Handle: "ffff:", Parent: "ingress"},
		},
	} {
		entries, err := Parse([]netlink.Message{tt.msg})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff([]Entry{{Ifindex: 3, Qdisc: tt.want}}, entries); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

func TestParseEmpty(t *testing.T) {
	for _, msgs := range [][]netlink.Message{nil, {}, {{Header: netlink.Header{Type: unix.RTM_NEWLINK}, Data: []byte{1}}}} {
		if entries, err := Parse(msgs); len(entries) != 0 || err != nil {
			t.Errorf("Parse(%v) = %v, %v", msgs, entries, err)
		}
	}
}

// TestParseBadMessage: one message that cannot be read is named and costs no
// other.
func TestParseBadMessage(t *testing.T) {
	cut := func(m netlink.Message, n int) netlink.Message {
		m.Data = m.Data[:n]
		return m
	}
	whole := message(1, 1, 0xFFFFFFFF, kind("tbf"))
	for _, tt := range []struct {
		bad  netlink.Message
		want string
	}{
		{cut(whole, sizeofTcmsg-1), "message 1: struct tcmsg: truncated"},
		{cut(whole, sizeofTcmsg+6), "message 1: invalid attribute; length too short or too large"},
		{message(1, 1, 1), "message 1: TCA_KIND is missing"},
		{message(1, 1, 1, kind("")), "message 1: TCA_KIND is missing"},
		{message(1, 1, 1, kind("tbf"), nest(netlink.Attribute{Type: statsBasic, Data: u64(1)})), "message 1: TCA_STATS_BASIC: truncated"},
		{message(1, 1, 1, kind("tbf"), nest(netlink.Attribute{Type: statsQueue, Data: u64(1)})), "message 1: TCA_STATS_QUEUE: truncated"},
		{message(1, 1, 1, kind("tbf"), nest(netlink.Attribute{Type: statsPkt64, Data: []byte{1}})), "message 1: netlink: attribute 8 is not a uint64; length: 1"},
		{message(1, 1, 1, kind("tbf"), netlink.Attribute{Type: unix.TCA_STATS, Data: u64(1)}), "message 1: TCA_STATS: truncated"},
		{message(1, 1, 1, kind("tbf"), netlink.Attribute{Type: unix.TCA_STATS2, Data: []byte{9, 0, 1, 0}}), "message 1: invalid attribute; length too short or too large"},
	} {
		entries, err := Parse([]netlink.Message{message(1, 0x10000, 0xFFFFFFFF, kind("a")), tt.bad, message(2, 0x10000, 0xFFFFFFFF, kind("b"))})
		if err == nil || err.Error() != tt.want {
			t.Errorf("error %q, want %q", err, tt.want)
		}
		var msgErr *MessageError
		if !errors.As(err, &msgErr) || msgErr.Index != 1 {
			t.Errorf("%s: no MessageError of message 1", tt.want)
		}
		if len(entries) != 2 || entries[0].Qdisc.Kind != "a" || entries[1].Qdisc.Kind != "b" {
			t.Errorf("%s: entries %v", tt.want, entries)
		}
	}
}

func TestParseBoundsErrors(t *testing.T) {
	msgs := make([]netlink.Message, 100)
	for i := range msgs {
		msgs[i].Header.Type = unix.RTM_NEWQDISC
	}
	_, err := Parse(msgs)
	if got := strings.Count(err.Error(), "\n") + 1; got != maxErrors+1 {
		t.Errorf("%d lines of errors:\n%v", got, err)
	}
	if !strings.Contains(err.Error(), "92 more messages could not be read") {
		t.Errorf("the rest is not counted: %v", err)
	}
}

// TestParseTwice: a qdisc that a racing dump lists twice counts once, with the
// later numbers; same handles on other devices or parents are others.
func TestParseTwice(t *testing.T) {
	entries, err := Parse([]netlink.Message{
		message(1, 0, 0x10010, kind("pfifo"), nest(basic(1, 1))),
		message(1, 0, 0x10020, kind("pfifo"), nest(basic(2, 2))),
		message(2, 0, 0x10010, kind("pfifo"), nest(basic(3, 3))),
		message(1, 0, 0x10010, kind("pfifo"), nest(basic(4, 4))),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, e := range entries {
		got = append(got, e.Qdisc.Packets)
	}
	if diff := cmp.Diff([]uint64{4, 2, 3}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHandleAndParent(t *testing.T) {
	for h, want := range map[uint32]string{0: "0:", 0x10000: "1:", 0x80010000: "8001:", 0xFFFF0000: "ffff:"} {
		if got := Handle(h); got != want {
			t.Errorf("Handle(%#x) = %q, want %q", h, got, want)
		}
	}
	for p, want := range map[uint32]string{
		0: "none", 0xFFFFFFFF: "root", 0xFFFFFFF1: "ingress", 0x1: ":1", 0xA: ":a",
		0x80010000: "8001:", 0x80010001: "8001:1", 0x10FFFF: "10:ffff", 0xFFFFFFF2: "ffff:fff2",
	} {
		if got := Parent(p, "x"); got != want {
			t.Errorf("Parent(%#x) = %q, want %q", p, got, want)
		}
	}
}

// FuzzParse: any bytes as the body of a message, beside a good one that must
// survive.
func FuzzParse(f *testing.F) {
	for _, side := range []string{"a", "b"} {
		for _, m := range testkit.ReadDump(f, filepath.Join(fixtures, side+"-qdisc.bin")) {
			f.Add(m.Data)
		}
	}
	f.Add([]byte{})
	f.Add(make([]byte, sizeofTcmsg))
	f.Add(message(1, 2, 3, kind("tbf"), nest(basic(1, 2), pkt64(1<<40), queue(1, 2, 3, 4, 5)), oldStats(1, 2, 3, 4, 5, 6)).Data)
	f.Add(message(1, 2, 3, kind("tbf"), netlink.Attribute{Type: unix.TCA_STATS2, Data: []byte{255, 255, 1, 0}}).Data)
	good := message(-1, 0xDEAD0000, 0xFFFFFFFF, kind("good_one"), nest(basic(1, 2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := Parse([]netlink.Message{{Header: netlink.Header{Type: unix.RTM_NEWQDISC}, Data: b}, good})
		if len(entries) == 0 || len(entries) > 2 || (err != nil && len(entries) != 1) {
			t.Fatalf("%d entries, error %v", len(entries), err)
		}
		if last := entries[len(entries)-1]; last.Qdisc.Packets != 2 || last.Qdisc.Handle != "dead:" {
			t.Fatalf("the good message was lost: %+v", last)
		}
		for _, e := range entries {
			if e.Qdisc.Kind == "" || !utf8.ValidString(e.Qdisc.Kind) || e.Qdisc.Parent == "" || !strings.Contains(e.Qdisc.Handle, ":") {
				t.Fatalf("labels: %+v", e)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	real := testkit.ReadDump(b, filepath.Join(fixtures, "a-qdisc.bin"))
	for _, n := range []int{10, 100, 1000, 5000} {
		msgs := make([]netlink.Message, n)
		for i := range msgs {
			msgs[i] = real[i%len(real)]
			msgs[i].Data = append([]byte(nil), msgs[i].Data...)
			binary.NativeEndian.PutUint32(msgs[i].Data[4:], uint32(i))
		}
		b.Run(fmt.Sprintf("qdiscs=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				entries, err := Parse(msgs)
				if err != nil || len(entries) != n {
					b.Fatal(len(entries), err)
				}
			}
		})
	}
}
