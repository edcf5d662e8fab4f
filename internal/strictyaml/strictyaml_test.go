package strictyaml

import (
	"net/netip"
	"strings"
	"testing"
)

type sample struct {
	Name string `yaml:"name"`
	Legs struct {
		Ports []uint16 `yaml:"ports"`
		Peers []struct {
			Addr netip.AddrPort `yaml:"addr"`
		} `yaml:"peers"`
	} `yaml:"legs"`
	On    bool    `yaml:"on"`
	Count int     `yaml:"count"`
	Share float64 `yaml:"share"`
}

func TestDecode(t *testing.T) {
	s := sample{Count: 7}
	lines, err := Decode([]byte("name: x\nlegs:\n  ports: [1, 2]\n  peers:\n  - addr: 10.0.0.1:5\non: true\nshare:\n"), &s)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "x" || len(s.Legs.Ports) != 2 || !s.On || s.Count != 7 || s.Legs.Peers[0].Addr.Port() != 5 {
		t.Errorf("read %+v", s)
	}
	if got := lines.Error("legs.peers[0].addr", "bad").Error(); got != "line 5: legs.peers[0].addr: bad" {
		t.Errorf("error = %q", got)
	}
	if got := lines.Error("legs.nothing", "missing").Error(); got != "line 3: legs.nothing: missing" {
		t.Errorf("error of an absent field = %q", got)
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"nam: x", `line 1: nam: unknown field; allowed here: name, legs, on, count, share`},
		{"legs:\n  prots: [1]", `line 2: legs.prots: unknown field; allowed here: ports, peers`},
		{"legs:\n  ports: [1, 70000]", `line 2: legs.ports[1]: expected a whole number from 0 to 65535, found "70000"`},
		{"legs:\n  ports: 50052", `line 2: legs.ports: expected a list, found "50052"`},
		{"legs:\n  peers:\n    - addr: nowhere", `line 3: legs.peers[0].addr: `},
		{"on: maybe", `line 1: on: expected true or false, found "maybe"`},
		{"count: many", `line 1: count: expected a whole number, found "many"`},
		{"share: [1]", `line 1: share: expected a number, found a list`},
		{"- a", `line 1: expected fields, found a list`},
		{"name: a\nname: b", `line 2: name: given twice`},
		{"name: a\n---\nname: b", `more than one YAML document`},
		{"name: [", `line 1: did not find expected node content`},
	} {
		var s sample
		_, err := Decode([]byte(tt.in), &s)
		if err == nil {
			t.Errorf("%q: no error", tt.in)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q:\n got %s\nwant %s", tt.in, err, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "name: x", "a: &a [*a]", "legs: {ports: [1]}", "x: &x\n - *x", "\x00", "legs: null", "---\n---"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		_, _ = Decode(data, &s)
	})
}
