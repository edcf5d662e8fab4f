package ebpf

import (
	"testing"

	"github.com/cilium/ebpf/asm"
)

// TestOneProgramRefused: the verifier refuses one program of the object (its
// first instruction reads a register that nobody set). The others run.
func TestOneProgramRefused(t *testing.T) {
	l := newLab(t)
	opts := l.options("")
	opts.setDefaults()
	p := &Probes{clock: opts.Clock, first: newFirstLook()}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	k, err := openKernel()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := configure(k, &opts)
	if err != nil {
		t.Fatal(err)
	}
	broken := spec.Programs[probesProgRetransmit]
	bad := asm.Mov.Reg(asm.R0, asm.R9)
	bad = bad.WithMetadata(broken.Instructions[0].Metadata) // it is the function's first now
	broken.Instructions[0].Metadata = asm.Metadata{}
	broken.Instructions = append(asm.Instructions{bad}, broken.Instructions...)

	if err := p.makeMaps(spec); err != nil {
		t.Fatal(err)
	}
	p.scan = newScanner(opts.MaxSockets)
	if err := p.watch(opts.Ports, opts.Namespaces); err != nil {
		t.Fatal(err)
	}
	problems := p.attachAll(k, spec, "", privileged())
	if len(problems) != 1 || problems[0].Reason != ReasonRefusedByKernel {
		t.Fatalf("problems %+v", problems)
	}
	t.Log(problems[0].Detail)
	if p.SendHook() == "" || len(p.Stats()) != 4 {
		t.Errorf("send hook %q, programs %+v", p.SendHook(), p.Stats())
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	client, server := l.dial(t, families[0], labPort)
	turn(client, server)
	one(t, drain(t, p))
}
