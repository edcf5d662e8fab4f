package lab

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// listening reads the sockets of the process's network namespace until addr is
// one that listens.
func listening(pid int, addr netip.AddrPort) error {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return err
	}
	if !parseListening(string(data), addr) {
		return fmt.Errorf("nobody listens on %s", addr)
	}
	return nil
}

// tcpListen is TCP_LISTEN (include/net/tcp_states.h) as /proc/net/tcp writes it.
const tcpListen = "0A"

// parseListening looks for an IPv4 address in /proc/net/tcp:
//
//	sl  local_address rem_address   st ...
//	 0: 02014D0A:C384 00000000:0000 0A ...
//
// The address is a 32-bit number of the host's byte order, little-endian here.
func parseListening(table string, addr netip.AddrPort) bool {
	ip := addr.Addr().As4()
	want := strings.ToUpper(hex.EncodeToString([]byte{ip[3], ip[2], ip[1], ip[0]})) + fmt.Sprintf(":%04X", addr.Port())
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && f[1] == want && f[3] == tcpListen {
			return true
		}
	}
	return false
}
