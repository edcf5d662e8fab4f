package ebpf

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
)

func TestReason(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("program: %w", err) }
	for _, test := range []struct {
		name       string
		err        error
		privileged bool
		want       string
	}{
		{"EPERM without capabilities", wrap(syscall.EPERM), false, ReasonNoPermission},
		{"EPERM with them", wrap(syscall.EPERM), true, ReasonRefusedByKernel},
		{"unreadable BTF", wrap(os.ErrPermission), false, ReasonNoPermission},
		{"no BTF", fmt.Errorf("%w: %w", errNoBTF, os.ErrNotExist), true, ReasonNoBTF},
		{"tracepoint absent", wrap(errNoHook), true, ReasonNotSupported},
		{"map type absent", wrap(ebpf.ErrNotSupported), true, ReasonNotSupported},
		{"memlock", wrap(syscall.ENOMEM), true, ReasonNoMemory},
		{"verifier", wrap(&ebpf.VerifierError{Cause: syscall.EINVAL}), true, ReasonRefusedByKernel},
		{"verifier, too complex", wrap(&ebpf.VerifierError{Cause: syscall.E2BIG}), true, ReasonRefusedByKernel},
		{"limit", wrap(&LimitError{"namespaces", 2000, MaxNamespaces}), true, ReasonBadOptions},
		{"anything", errors.New("odd"), true, ReasonRefusedByKernel},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := problem("tp_btf/x", "exchanges", test.err, test.privileged)
			if p.Reason != test.want {
				t.Errorf("reason %q, want %q", p.Reason, test.want)
			}
			for _, part := range []string{"tp_btf/x", test.err.Error(), "exchanges"} {
				if !strings.Contains(p.Detail, part) {
					t.Errorf("detail %q does not say %q", p.Detail, part)
				}
			}
		})
	}
}

func TestRingSize(t *testing.T) {
	for _, test := range []struct{ want, page, got uint32 }{
		{1, 4096, 4096}, {4096, 4096, 4096}, {4097, 4096, 8192}, {1 << 20, 4096, 1 << 20},
		{1<<20 + 1, 4096, 1 << 21}, {5000, 65536, 65536}, {^uint32(0), 4096, 1 << 30},
	} {
		if got := ringSize(test.want, test.page); got != test.got {
			t.Errorf("ringSize(%d, %d) = %d, want %d", test.want, test.page, got, test.got)
		}
	}
}
