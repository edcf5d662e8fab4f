package sockdiag

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// run is inet_diag_bc_run (net/ipv4/inet_diag.c) for port comparisons.
func run(t testing.TB, code []byte, sport, dport uint16) bool {
	left, at := len(code), 0
	for steps := 0; left > 0; steps++ {
		if steps > len(code) {
			t.Fatal("the bytecode does not end")
		}
		op := code[at:]
		yes, no := int(op[1]), int(binary.NativeEndian.Uint16(op[2:]))
		holds := false
		port := func() uint16 { return binary.NativeEndian.Uint16(op[6:]) }
		switch op[0] {
		case bcJmp:
		case bcSGE:
			holds = sport >= port()
		case bcSLE:
			holds = sport <= port()
		case bcDGE:
			holds = dport >= port()
		case bcDLE:
			holds = dport <= port()
		default:
			t.Fatalf("unknown op %d at %d", op[0], at)
		}
		if holds {
			at, left = at+yes, left-yes
		} else {
			at, left = at+no, left-no
		}
	}
	return left == 0
}

// audit is inet_diag_bc_audit: what the kernel refuses with EINVAL.
func audit(t testing.TB, code []byte) {
	reachable := map[int]bool{len(code): true} // by the yes path
	for at := 0; at < len(code); at += int(code[at+1]) {
		reachable[at] = true
	}
	for at := 0; at < len(code); {
		left := len(code) - at
		yes, no := int(code[at+1]), int(binary.NativeEndian.Uint16(code[at+2:]))
		least := sizeofOp
		if code[at] != bcJmp {
			least = sizeofCompare
		}
		if no < least || no > left+4 || no&3 != 0 || (no < left && !reachable[at+no]) {
			t.Fatalf("op at %d: no jump of %d", at, no)
		}
		if yes < least || yes > left+4 || yes&3 != 0 {
			t.Fatalf("op at %d: yes jump of %d", at, yes)
		}
		at += yes
	}
}

func TestFilter(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		port := rapid.Uint16Range(1, 65535)
		ports := rapid.SliceOfN(port, 1, 40).Draw(r, "ports")
		code := Filter(ports)
		audit(t, code)
		near := rapid.Custom(func(r *rapid.T) uint16 {
			if rapid.Bool().Draw(r, "near") {
				return rapid.SampledFrom(ports).Draw(r, "of") + uint16(rapid.IntRange(-1, 1).Draw(r, "off"))
			}
			return port.Draw(r, "any")
		})
		for range 20 {
			s, d := near.Draw(r, "sport"), near.Draw(r, "dport")
			want := slices.Contains(ports, s) || slices.Contains(ports, d)
			if got := run(t, code, s, d); got != want {
				r.Fatalf("sport %d dport %d in %v: %t, want %t", s, d, ports, got, want)
			}
		}
	})
}

// TestFilterLargest: as many ports as fit still pass the audit.
func TestFilterLargest(t *testing.T) {
	ports := make([]uint16, maxPorts)
	for i := range ports {
		ports[i] = uint16(i + 1)
	}
	code := Filter(ports)
	if len(code) > 1<<16-8 {
		t.Fatalf("%d bytes do not fit an attribute", len(code))
	}
	audit(t, code)
	if !run(t, code, 1, 60000) || !run(t, code, 60000, maxPorts) || run(t, code, 60000, 60001) {
		t.Error("first or last port is not found, or a stranger is")
	}
}
