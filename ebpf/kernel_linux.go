package ebpf

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// kernel is what the running kernel's BTF says about the hooks.
type kernel struct {
	cache *btf.Cache // parsed once for all programs
	spec  *btf.Spec
}

func openKernel() (*kernel, error) {
	cache := btf.NewCache()
	spec, err := cache.Kernel()
	if errors.Is(err, os.ErrPermission) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoBTF, err)
	}
	return &kernel{cache, spec}, nil
}

// tracepoint gives the argument count of a raw tracepoint, without the
// leading void *__data; false if the kernel has no such tracepoint.
// DECLARE_TRACE leaves a typedef btf_trace_NAME of its prototype
// (include/trace/bpf_probe.h).
func (k *kernel) tracepoint(name string) (args int, ok bool) {
	var def *btf.Typedef
	if err := k.spec.TypeByName("btf_trace_"+name, &def); err != nil {
		return 0, false
	}
	ptr, ok := def.Type.(*btf.Pointer)
	if !ok {
		return 0, false
	}
	proto, ok := ptr.Target.(*btf.FuncProto)
	if !ok || len(proto.Params) == 0 {
		return 0, false
	}
	return len(proto.Params) - 1, true
}

func (k *kernel) function(name string) bool {
	var fn *btf.Func
	return k.spec.TypeByName(name, &fn) == nil
}

// privileged says whether the caller may load tracing programs: CAP_BPF and
// CAP_PERFMON, or CAP_SYS_ADMIN, which holds both.
func privileged() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	has := func(capability int) bool {
		return data[capability/32].Effective&(1<<(capability%32)) != 0
	}
	return has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON)
}
