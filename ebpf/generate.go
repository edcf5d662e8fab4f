// Package ebpf watches TCP in the kernel: the exchange clock, retransmits by
// kind and the life spans of connections.
//
// In: the ports and network namespaces to watch, and the running kernel's
// BTF. Out: event.Exchange, event.Retransmit and event.Connection, drained
// from a ring buffer, with Leg left "": naming is the caller's.
//
// probes.bpf.c and its headers hold the programs: exchange.h, retransmit.h,
// sockstate.h, the maps they share in maps.h and the kernel fields they read
// in kernel.h. load, attach, watch, drain, scan and stats are the Go side of
// one thing each; decode turns bytes into values and clock maps the kernel's
// monotonic time to wall-clock time, both without touching the kernel.
//
// # What it needs
//
// CAP_BPF and CAP_PERFMON (before 5.8 CAP_SYS_ADMIN), kernel BTF and a ring
// buffer (5.8). Each program is loaded and attached alone: what a kernel
// refuses is an event.Problem and costs only what that program saw.
//
// # What it costs
//
// Kernel memory is bounded at load time: the ring (Options.RingBytes, 1 MiB)
// and the socket table (Options.MaxSockets, 4096 at about 300 bytes each),
// both allocated up front, 8 KB for the ports and about 100 KB for the
// namespaces (1024). What does not fit is counted: see Losses.
//
// # What it does not see
//
// Replies that arrive after the client half-closed (tcp_probe fires for
// established sockets only), Multipath TCP, and before 6.3 what is sent with
// sendfile (tcp_sendpage). With the fentry hook a send is timed when the call
// begins, so a call that blocks on a full send buffer counts as waiting. PIDs
// are those of the initial PID namespace.
package ebpf

// The objects are committed, made by the clang that clang.version names;
// TestGenerated makes them again and compares.
//
//go:generate go tool -modfile=../tools/go.mod bpf2go -go-package ebpf -target bpfel -type exchange_event -type retransmit_event -type connection_event -type socket_state probes probes.bpf.c -- -mcpu=v3 -Wall -Wextra -Wno-unused-parameter -Werror
