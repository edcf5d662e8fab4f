package sockdiag

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct tcp_info (include/uapi/linux/tcp.h). Kernels only ever
// append to it, so a field is there when the attribute is long enough:
// bytes_acked since 4.1, min_rtt and notsent_bytes since 4.6, bytes_sent,
// bytes_retrans and dsack_dups since 4.19, rcv_ooopack since 5.4.
const (
	offUnacked       = int(unsafe.Offsetof(unix.TCPInfo{}.Unacked))
	offLastSent      = int(unsafe.Offsetof(unix.TCPInfo{}.Last_data_sent))
	offLastReceived  = int(unsafe.Offsetof(unix.TCPInfo{}.Last_data_recv))
	offRTT           = int(unsafe.Offsetof(unix.TCPInfo{}.Rtt))
	offTotalRetrans  = int(unsafe.Offsetof(unix.TCPInfo{}.Total_retrans))
	offBytesAcked    = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked))
	offBytesReceived = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_received))
	offNotSent       = int(unsafe.Offsetof(unix.TCPInfo{}.Notsent_bytes))
	offMinRTT        = int(unsafe.Offsetof(unix.TCPInfo{}.Min_rtt))
	offBytesSent     = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_sent))
	offBytesRetrans  = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_retrans))
	offDSACKs        = int(unsafe.Offsetof(unix.TCPInfo{}.Dsack_dups))
	offOutOfOrder    = int(unsafe.Offsetof(unix.TCPInfo{}.Rcv_ooopack))
)

// sizeofOldest is tcp_info up to total_retrans, as 2.6 kernels send it.
const sizeofOldest = offTotalRetrans + 4

// sizeofFull is what every field used here needs.
const sizeofFull = offOutOfOrder + 4

// parseInfo reads struct tcp_info as far as this kernel fills it.
func (s *Socket) parseInfo(b []byte) error {
	if len(b) < sizeofOldest {
		return fmt.Errorf("struct tcp_info has %d bytes, at least %d are needed: %w", len(b), sizeofOldest, errTruncated)
	}
	u32 := func(at int) uint32 {
		if at+4 > len(b) {
			return 0
		}
		return binary.NativeEndian.Uint32(b[at:])
	}
	u64 := func(at int) uint64 {
		if at+8 > len(b) {
			return 0
		}
		return binary.NativeEndian.Uint64(b[at:])
	}
	s.HasInfo, s.InfoSize = true, len(b)
	s.RTT = time.Duration(u32(offRTT)) * time.Microsecond
	// ~0 until the first sample (net/ipv4/tcp.c, tcp_init_sock).
	if us := u32(offMinRTT); us != ^uint32(0) {
		s.MinRTT = time.Duration(us) * time.Microsecond
	}
	s.SinceSend = time.Duration(u32(offLastSent)) * time.Millisecond
	s.SinceReceive = time.Duration(u32(offLastReceived)) * time.Millisecond
	s.UnackedSegments = u32(offUnacked)
	s.Retransmits = uint64(u32(offTotalRetrans))
	s.DSACKs = uint64(u32(offDSACKs))
	s.OutOfOrder = uint64(u32(offOutOfOrder))
	s.BytesAcked, s.BytesReceived = u64(offBytesAcked), u64(offBytesReceived)
	s.BytesSent, s.BytesRetrans, s.NotSent = u64(offBytesSent), u64(offBytesRetrans), u32(offNotSent)
	return nil
}
