package ebpf

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"grayfail/event"
)

// Reasons of the problems this package reports: label values, so stable.
const (
	ReasonNoPermission    = "no_permission"     // CAP_BPF and CAP_PERFMON are missing
	ReasonNoBTF           = "no_btf"            // the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)
	ReasonNotSupported    = "not_supported"     // this kernel has no such hook, map or helper
	ReasonRefusedByKernel = "refused_by_kernel" // it has, and refuses ours
	ReasonNoMemory        = "no_memory"         // maps do not fit, or RLIMIT_MEMLOCK before 5.11
	ReasonBadOptions      = "bad_options"       // more namespaces than fit
)

// problem says what is lost with what, and why. privileged: the caller holds
// the capabilities, so EPERM is not for want of them.
func problem(what, lost string, err error, privileged bool) event.Problem {
	reason := reasonOf(err, privileged)
	detail := fmt.Sprintf("%s: %v", what, err)
	if lost != "" {
		detail = fmt.Sprintf("%s; without it: %s", detail, lost)
	}
	if advice := advices[reason]; advice != "" {
		detail += "; " + advice
	}
	return event.Problem{Reason: reason, Detail: detail}
}

var advices = map[string]string{
	ReasonNoPermission: "grant CAP_BPF and CAP_PERFMON (systemd: AmbientCapabilities=)",
	ReasonNoBTF:        "needs a kernel built with CONFIG_DEBUG_INFO_BTF (/sys/kernel/btf/vmlinux)",
	ReasonNoMemory:     "raise RLIMIT_MEMLOCK or lower the number of sockets and the ring size",
}

func reasonOf(err error, privileged bool) string {
	var verifier *ebpf.VerifierError
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		return ReasonBadOptions
	case errors.Is(err, errNoBTF):
		return ReasonNoBTF
	case errors.Is(err, os.ErrPermission) && !privileged:
		return ReasonNoPermission
	case errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.E2BIG) && !errors.As(err, &verifier):
		return ReasonNoMemory
	case errors.Is(err, errNoHook), errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, btf.ErrNotFound):
		return ReasonNotSupported
	}
	return ReasonRefusedByKernel
}

var (
	errNoBTF  = errors.New("no kernel BTF")
	errNoHook = errors.New("not in this kernel's BTF")
)

// LimitError says that something to watch does not fit its table.
type LimitError struct {
	What string // namespaces
	Got  int
	Max  int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d %s to watch: at most %d fit", e.Got, e.What, e.Max)
}
