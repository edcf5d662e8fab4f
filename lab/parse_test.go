package lab

import "testing"

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
