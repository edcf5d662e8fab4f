package runner

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"grayfail/lab"
)

// tcpCounts are a namespace's: RetransSegs of /proc/net/snmp and TCPTimeouts of
// /proc/net/netstat (retransmission timeouts that expired).
type tcpCounts struct{ retransmits, timeouts uint64 }

// readTCP reads them in ns.
func readTCP(ctx context.Context, ns lab.Namespace) (tcpCounts, error) {
	out, err := ns.Exec(ctx, "cat", "/proc/net/snmp", "/proc/net/netstat")
	if err != nil {
		return tcpCounts{}, err
	}
	return parseTCP(out)
}

// parseTCP reads pairs of lines, names and then values.
func parseTCP(text string) (c tcpCounts, err error) {
	found := 0
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(names) == 0 || len(fields) == 0 || fields[0] != names[0] {
			names = fields
			continue
		}
		for i := 1; i < min(len(names), len(fields)); i++ {
			var to *uint64
			switch names[0] + names[i] {
			case "Tcp:RetransSegs":
				to = &c.retransmits
			case "TcpExt:TCPTimeouts":
				to = &c.timeouts
			default:
				continue
			}
			if *to, err = strconv.ParseUint(fields[i], 10, 64); err != nil {
				return c, fmt.Errorf("%s%s: %w", names[0], names[i], err)
			}
			found++
		}
		names = nil
	}
	if found != 2 {
		return c, fmt.Errorf("%d of Tcp:RetransSegs and TcpExt:TCPTimeouts are there", found)
	}
	return c, nil
}
