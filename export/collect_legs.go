package export

import (
	"net/netip"
	"slices"
	"strconv"

	"grayfail/event"
)

func (b *builder) legs(legs []legView) {
	for _, leg := range legs {
		b.gauge(legInfo, 1, leg.name, leg.Role.String(), leg.Netns,
			addrText(leg.Local), peerText(leg.Peer), leg.Device, leg.RDMADevice, portText(leg.RDMAPort))
		if leg.Expected != "" && leg.Expected != "auto" {
			b.gauge(legExpected, 1, leg.name, leg.Expected)
		}
		b.transport(leg)
		b.tcp(leg)
	}
}

func (b *builder) transport(leg legView) {
	is := leg.Transport
	if !slices.Contains(event.Transports, is) {
		is = event.TransportUnknown
	}
	oneHot(b, legTransport, event.Transports, is, func(t event.Transport) []string {
		return []string{leg.name, string(t)}
	})
	if is == event.TransportUnknown && leg.fallbackSeconds == 0 {
		return // 0 would say that it is not in fallback
	}
	switch {
	case is == event.TransportUnknown:
	case fellBack(leg.Leg):
		b.gauge(legFallback, 1, leg.name, leg.Reason)
	default:
		b.gauge(legFallback, 0, leg.name, "")
	}
	b.put(legFallbackSeconds, leg.fallbackSeconds, b.labels(legFallbackSeconds, []string{leg.name}))
}

// fellBack: payload flows over TCP on an address that could do RDMA, or that
// was expected to and is in no GID table.
func fellBack(l *event.Leg) bool {
	return l.Transport == event.TransportFallback ||
		l.Transport == event.TransportTCP && l.Expected == "rdma" && l.Reason == "no_gid"
}

func (b *builder) tcp(leg legView) {
	b.gauge(tcpConnections, float64(leg.Connections), leg.name)
	if leg.RTT > 0 && leg.GoneNS == 0 {
		b.gauge(tcpRTT, leg.RTT.Seconds(), leg.name)
	}
	if leg.MinRTT > 0 && leg.GoneNS == 0 {
		b.gauge(tcpMinRTT, leg.MinRTT.Seconds(), leg.name)
	}
	// A socket that was read has a round-trip time since its handshake: a leg
	// without any of these has never been read, which is not 0 bytes.
	if leg.RTT == 0 && leg.MinRTT == 0 && leg.BytesAcked == 0 && leg.BytesReceived == 0 {
		return
	}
	b.counter(tcpPayload, leg.BytesAcked, leg.name, "sent")
	b.counter(tcpPayload, leg.BytesReceived, leg.name, "received")
	b.counter(tcpOutOfOrder, leg.OutOfOrder, leg.name)
}

func (b *builder) hosts(addresses []netip.Addr) {
	for _, a := range addresses {
		if a.IsValid() {
			b.gauge(hostInfo, 1, a.Unmap().String())
		}
	}
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// peerText leaves out the port where there is none: peers that opened the
// connection have a port of no meaning.
func peerText(p netip.AddrPort) string {
	if p.Port() == 0 {
		return addrText(p.Addr())
	}
	return p.String()
}

func portText(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}
