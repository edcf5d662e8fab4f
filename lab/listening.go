package lab

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// listening reads /proc/PID/net/tcp, the sockets of the process's network
// namespace, until addr stands there in state LISTEN.
func listening(pid int, addr netip.AddrPort) error {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	if err != nil {
		return err
	}
	// "  0: 02004D0A:C384 00000000:0000 0A ...": address in host byte order
	// (little-endian here), port, 0A is TCP_LISTEN.
	ip := addr.Addr().As4()
	want := strings.ToUpper(hex.EncodeToString([]byte{ip[3], ip[2], ip[1], ip[0]})) + fmt.Sprintf(":%04X", addr.Port())
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[1] == want && f[3] == "0A" {
			return nil
		}
	}
	return fmt.Errorf("nobody listens on %s", addr)
}
