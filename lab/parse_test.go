package lab

import (
	"net/netip"
	"strings"
	"testing"
)

func FuzzParseProcStat(f *testing.F) {
	f.Add("1234 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20")
	f.Add("1 (x) Z 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9")
	f.Add("")
	f.Add(") ")
	f.Fuzz(func(t *testing.T, line string) {
		letter, _, err := parseProcStat(line)
		if err == nil && letter == 0 {
			t.Errorf("no state and no error for %q", line)
		}
	})
}

func TestParseProcStat(t *testing.T) {
	// A command may hold the very characters that end it.
	letter, ticks, err := parseProcStat("77 (odd) T name) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20")
	if err != nil || letter != 'S' || ticks != 4711 {
		t.Errorf("got %c, %d, %v; want S, 4711", letter, ticks, err)
	}
	if _, _, err := parseProcStat("77 (x) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"); err == nil {
		t.Error("a zombie counts as alive")
	}
}

func FuzzNftCounters(f *testing.F) {
	f.Add([]byte(`{"nftables":[{"metainfo":{}},{"rule":{"expr":[{"counter":{"packets":7,"bytes":1}}]}},{"rule":{"expr":[{"match":{}},{"counter":{"packets":3,"bytes":1}},{"drop":null}]}}]}`))
	f.Add([]byte(`{"nftables":null}`))
	f.Fuzz(func(t *testing.T, listing []byte) {
		if counts, err := nftCounters(listing); err != nil && counts != nil {
			t.Errorf("counts %v beside error %v", counts, err)
		}
	})
}

// tcpTable is from a worker's namespace, Linux 6.18.
const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 02024D0A:C384 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 38710 1 ffff8881 100 0 0 10 0
   1: 02014D0A:C384 01014D0A:E718 01 00000000:00000000 00:00000000 00000000     0        0 38711 1 ffff8882 20 4 30 10 -1
`

func TestParseListening(t *testing.T) {
	for addr, want := range map[string]bool{
		"10.77.2.2:50052": true,
		"10.77.1.2:50052": false, // connected, not listening
		"10.77.2.2:50053": false,
	} {
		if got := parseListening(tcpTable, netip.MustParseAddrPort(addr)); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
}

func FuzzParseListening(f *testing.F) {
	f.Add(tcpTable)
	f.Add("")
	addr := netip.MustParseAddrPort("10.77.2.2:50052")
	f.Fuzz(func(t *testing.T, table string) {
		if parseListening(table, addr) && !strings.Contains(table, "02024D0A:C384") {
			t.Errorf("found in %q", table)
		}
	})
}
