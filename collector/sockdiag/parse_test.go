package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"

	"grayfail/event"
	"grayfail/internal/testkit"
)

// summary is what a fixture's socket is known to be from how it was made.
type summary struct {
	Local, Peer     string // without ephemeral ports
	State           event.TCPState
	Acked, Received uint64
	ReceiveQueue    uint32
	Owned, Info     bool
	OpenedByUs      bool
}

func summarize(s *Socket) summary {
	addr := func(ap netip.AddrPort) string {
		if port := ap.Port(); port != 0 && port != 50052 && port != 50053 {
			return ap.Addr().String()
		}
		return ap.String()
	}
	return summary{
		Local: addr(s.Flow.Local), Peer: addr(s.Flow.Peer), State: s.State,
		Acked: s.BytesAcked, Received: s.BytesReceived, ReceiveQueue: s.ReceiveQueueBytes,
		Owned: s.Inode != 0, Info: s.HasInfo, OpenedByUs: opened(s),
	}
}

// TestFixtures: captured dumps of connections whose history is known. A served
// client has sent 33 bytes (and a SYN) and received 36; one half closed it
// (and its FIN counts); one waits in the accept queue.
func TestFixtures(t *testing.T) {
	for name, want := range map[string][]summary{
		"coordinator-inet": {
			{Local: "10.79.2.1", Peer: "10.79.2.99:50052", State: event.TCPSynSent, Owned: true, Info: true},
			{Local: "10.79.2.1", Peer: "10.79.2.2:50052", State: event.TCPEstablished, Acked: 34, Received: 36, Owned: true, Info: true, OpenedByUs: true},
			{Local: "10.79.2.1", Peer: "10.79.2.2:50052", State: event.TCPFinWait2, Acked: 35, Received: 36, Owned: true, Info: true},
			{Local: "10.79.2.1", Peer: "10.79.2.2:50052", State: event.TCPTimeWait},
			{Local: "10.79.2.1", Peer: "10.79.2.2:50052", State: event.TCPEstablished, Acked: 34, Received: 0, Owned: true, Info: true, OpenedByUs: true},
		},
		"coordinator-inet6": {
			{Local: "10.79.2.1", Peer: "10.79.2.2:50053", State: event.TCPEstablished, Acked: 701, Received: 7000, Owned: true, Info: true, OpenedByUs: true},
			{Local: "fd79::1", Peer: "[fd79::2]:50053", State: event.TCPEstablished, Acked: 701, Received: 7000, Owned: true, Info: true, OpenedByUs: true},
		},
		"worker-inet": {
			{Local: "10.79.2.2:50052", Peer: "0.0.0.0:0", State: event.TCPListen, ReceiveQueue: 1, Owned: true, Info: true},
			{Local: "10.79.2.2:50052", Peer: "10.79.2.1", State: event.TCPCloseWait, Acked: 36, Received: 34, ReceiveQueue: 1, Owned: true, Info: true},
			{Local: "10.79.2.2:50052", Peer: "10.79.2.1", State: event.TCPEstablished, Acked: 36, Received: 33, Owned: true, Info: true},
			{Local: "10.79.2.2:50052", Peer: "10.79.2.1", State: event.TCPEstablished, Received: 33, ReceiveQueue: 33, Info: true},
		},
		"worker-inet6": {
			{Local: "[::]:50053", Peer: "[::]:0", State: event.TCPListen, Owned: true, Info: true},
			{Local: "10.79.2.2:50053", Peer: "10.79.2.1", State: event.TCPEstablished, Acked: 7000, Received: 700, Owned: true, Info: true},
			{Local: "fd79::2", Peer: "fd79::1", State: event.TCPEstablished, Acked: 7000, Received: 700, Owned: true, Info: true},
		},
	} {
		sockets, err := Parse(testkit.ReadDump(t, filepath.Join(fixtures, name+".bin")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []summary
		cookies := make(map[uint64]bool)
		for i := range sockets {
			s := &sockets[i]
			got = append(got, summarize(s))
			cookies[s.Flow.Socket] = true
			if s.State == event.TCPEstablished && s.Flow.Local.Port() > 60999 && s.RTT == 0 {
				t.Errorf("%s: no RTT: %+v", name, s)
			}
		}
		if name == "worker-inet6" {
			want[2].Local = "[fd79::2]:50053"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(cookies) != len(sockets) || cookies[0] {
			t.Errorf("%s: cookies are not distinct: %v", name, cookies)
		}
	}
}

// message crafts an answer for an IPv4 socket with the given attributes.
func message(attrs ...netlink.Attribute) netlink.Message {
	b := make([]byte, sizeofMsg)
	b[0], b[1] = unix.AF_INET, byte(event.TCPEstablished)
	binary.BigEndian.PutUint16(b[4:], 40000)
	binary.BigEndian.PutUint16(b[6:], 50052)
	copy(b[8:], []byte{10, 0, 0, 1})
	copy(b[24:], []byte{10, 0, 0, 2})
	binary.NativeEndian.PutUint32(b[44:], 0x11223344)
	binary.NativeEndian.PutUint32(b[48:], 0x55667788)
	binary.NativeEndian.PutUint32(b[56:], 77)
	binary.NativeEndian.PutUint32(b[64:], 1000)
	binary.NativeEndian.PutUint32(b[68:], 4242)
	return netlink.Message{
		Header: netlink.Header{Type: unix.SOCK_DIAG_BY_FAMILY},
		Data:   append(b, nltest.MustMarshalAttributes(attrs)...),
	}
}

// info is a struct tcp_info of n bytes in which every used field has a number
// of its own.
func info(n int) netlink.Attribute {
	b := make([]byte, 512)
	for at, v := range map[int]uint32{
		offUnacked: 1, offLastSent: 2, offLastReceived: 3, offRTT: 4, offTotalRetrans: 5,
		offMinRTT: 6, offDSACKs: 7, offOutOfOrder: 8, offNotSent: 9,
	} {
		binary.NativeEndian.PutUint32(b[at:], v)
	}
	for at, v := range map[int]uint64{offBytesAcked: 1 << 40, offBytesReceived: 1 << 41, offBytesSent: 1 << 42, offBytesRetrans: 1 << 43} {
		binary.NativeEndian.PutUint64(b[at:], v)
	}
	return netlink.Attribute{Type: attrInfo, Data: b[:n]}
}

// TestInfoByLength: older kernels send less of tcp_info; what is not there is
// zero, and what is there is right. The lengths are those of the releases
// named in info.go.
func TestInfoByLength(t *testing.T) {
	base := event.TCPSocket{
		State: event.TCPEstablished, Inode: 4242, UID: 1000, ReceiveQueueBytes: 77, HasInfo: true,
		Flow: event.Flow{
			Local: netip.MustParseAddrPort("10.0.0.1:40000"), Peer: netip.MustParseAddrPort("10.0.0.2:50052"),
			Socket: 0x5566778811223344,
		},
		UnackedSegments: 1, SinceSend: 2 * time.Millisecond, SinceReceive: 3 * time.Millisecond,
		RTT: 4 * time.Microsecond, Retransmits: 5,
	}
	v41 := base
	v41.BytesAcked, v41.BytesReceived = 1<<40, 1<<41
	v46 := v41
	v46.MinRTT = 6 * time.Microsecond
	v419 := v46
	v419.DSACKs = 7
	v54 := v419
	v54.OutOfOrder = 8
	for _, tt := range []struct {
		size    int
		want    event.TCPSocket
		missing string
	}{
		{104, base, "no payload bytes, minimum RTT, DSACKs or out-of-order segments"},
		{136, v41, "no minimum RTT, DSACKs or out-of-order segments"},
		{160, v46, "no DSACKs or out-of-order segments"},
		{224, v419, "no out-of-order segments"},
		{232, v54, ""},
		{280, v54, ""},
		{512, v54, ""},
	} {
		sockets, err := Parse([]netlink.Message{message(info(tt.size))})
		if err != nil || len(sockets) != 1 {
			t.Errorf("%d bytes: %v, %v", tt.size, sockets, err)
			continue
		}
		if diff := cmp.Diff(tt.want, sockets[0].TCPSocket, cmp.AllowUnexported(netip.AddrPort{}, netip.Addr{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
			t.Errorf("%d bytes:\n%s", tt.size, diff)
		}
		if sockets[0].InfoSize != tt.size {
			t.Errorf("InfoSize %d, want %d", sockets[0].InfoSize, tt.size)
		}
		var r reading
		r.infoSize = tt.size
		problems := r.limits(10)
		if (len(problems) == 0) != (tt.missing == "") || (len(problems) == 1 && !strings.Contains(problems[0].Detail, tt.missing)) {
			t.Errorf("%d bytes: problems %v, want %q", tt.size, problems, tt.missing)
		}
	}
}

func TestMinRTTWithoutSample(t *testing.T) {
	attr := info(280)
	binary.NativeEndian.PutUint32(attr.Data[offMinRTT:], ^uint32(0))
	sockets, err := Parse([]netlink.Message{message(attr)})
	if err != nil || len(sockets) != 1 || sockets[0].MinRTT != 0 {
		t.Errorf("%+v, %v: ~0 is no reading", sockets, err)
	}
}

func TestParseBadMessage(t *testing.T) {
	short := message()
	short.Data = short.Data[:sizeofMsg-1]
	alien := message()
	alien.Data[0] = unix.AF_UNIX
	cut := message(info(280))
	cut.Data = cut.Data[:len(cut.Data)-4]
	for _, tt := range []struct {
		bad  netlink.Message
		want string
	}{
		{short, "message 1: struct inet_diag_msg: truncated"},
		{alien, "message 1: address family 1 is neither IPv4 nor IPv6"},
		{cut, "message 1: invalid attribute; length too short or too large"},
		{message(info(103)), "message 1: struct tcp_info has 103 bytes, at least 104 are needed: truncated"},
	} {
		sockets, err := Parse([]netlink.Message{message(info(280)), tt.bad, message()})
		if err == nil || err.Error() != tt.want {
			t.Errorf("error %q, want %q", err, tt.want)
		}
		var msgErr *MessageError
		if !errors.As(err, &msgErr) || msgErr.Index != 1 || len(sockets) != 2 {
			t.Errorf("%s: %d sockets, %v", tt.want, len(sockets), err)
		}
	}
	if sockets, err := Parse(nil); len(sockets) != 0 || err != nil {
		t.Errorf("nothing: %v, %v", sockets, err)
	}
}

func TestParseBoundsErrors(t *testing.T) {
	msgs := make([]netlink.Message, 100)
	for i := range msgs {
		msgs[i].Header.Type = unix.SOCK_DIAG_BY_FAMILY
	}
	if _, err := Parse(msgs); strings.Count(err.Error(), "\n") != maxErrors || !strings.Contains(err.Error(), "92 more messages could not be read") {
		t.Errorf("errors: %v", err)
	}
}

// FuzzParse: any bytes as an answer, beside a good one that must survive.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join(fixtures, "*.bin"))
	if err != nil || len(paths) != 4 {
		f.Fatalf("fixtures: %v, %v", paths, err)
	}
	for _, path := range paths {
		for _, m := range testkit.ReadDump(f, path) {
			f.Add(m.Data)
		}
	}
	f.Add([]byte{})
	f.Add(message(info(104)).Data)
	f.Add(message(info(225)).Data)
	good := message(info(280))
	f.Fuzz(func(t *testing.T, b []byte) {
		sockets, err := Parse([]netlink.Message{{Header: netlink.Header{Type: unix.SOCK_DIAG_BY_FAMILY}, Data: b}, good})
		if len(sockets) == 0 || len(sockets) > 2 || (err != nil && len(sockets) != 1) {
			t.Fatalf("%d sockets, error %v", len(sockets), err)
		}
		if last := sockets[len(sockets)-1]; last.BytesAcked != 1<<40 {
			t.Fatalf("the good message was lost: %+v", last)
		}
		for i := range sockets {
			s := &sockets[i]
			if !s.Flow.Local.Addr().IsValid() || s.Flow.Peer.Addr().Is4In6() || s.RTT < 0 || s.MinRTT < 0 || s.SinceSend < 0 || s.SinceReceive < 0 {
				t.Fatalf("%+v", s)
			}
			if !s.HasInfo && (s.BytesAcked != 0 || s.RTT != 0) {
				t.Fatalf("numbers without tcp_info: %+v", s)
			}
			opened(s)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	real := testkit.ReadDump(b, filepath.Join(fixtures, "coordinator-inet6.bin"))
	for _, n := range []int{100, 1000, 10_000} {
		var msgs []netlink.Message
		for i := range n {
			msgs = append(msgs, real[i%len(real)])
		}
		b.Run(fmt.Sprintf("sockets=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if sockets, err := Parse(msgs); err != nil || len(sockets) != n {
					b.Fatal(len(sockets), err)
				}
			}
		})
	}
}
