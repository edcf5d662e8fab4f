package ebpf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"grayfail/event"
)

// hook is one program and its place in the kernel.
type hook struct {
	program    string // its name in the object
	tracepoint string // "" for a function entry
	function   string
	lost       string // what is not seen without it
	after      bool   // a send hook that runs after the send

	prog *ebpf.Program
	link link.Link
}

// name is the attach point, as the operator knows it.
func (h *hook) name() string {
	if h.tracepoint != "" {
		return "tp_btf/" + h.tracepoint
	}
	return "fentry/" + h.function
}

// present says whether this kernel has the place, by its BTF: version numbers
// say nothing on kernels with backports.
func (h *hook) present(k *kernel) bool {
	if h.tracepoint != "" {
		_, ok := k.tracepoint(h.tracepoint)
		return ok
	}
	return k.function(h.function)
}

func (h *hook) close() error {
	return errors.Join(h.link.Close(), h.prog.Close())
}

const (
	lostExchanges   = "exchanges: no leg is clocked"
	lostRetransmits = "retransmits"
	lostSynack      = "retransmitted SYN-ACKs"
	lostConnections = "life spans of connections, and closed sockets stay in the table until they are evicted"
)

func stateHook() *hook {
	return &hook{program: probesProgSetState, tracepoint: "inet_sock_set_state", lost: lostConnections}
}

func receiveHook() *hook {
	return &hook{program: probesProgReceive, tracepoint: "tcp_probe", lost: lostExchanges}
}

func retransmitHooks() []*hook {
	return []*hook{
		{program: probesProgRetransmit, tracepoint: "tcp_retransmit_skb", lost: lostRetransmits},
		{program: probesProgRetransmitSynack, tracepoint: "tcp_retransmit_synack", lost: lostSynack},
	}
}

// sendHooks lists the places where a send can be seen, best first: before
// each chunk under the socket's lock (6.15), after each call (6.3), before
// each call where BPF trampolines work.
func sendHooks() []*hook {
	return []*hook{
		{program: probesProgSendLocked, tracepoint: "tcp_sendmsg_locked", lost: lostExchanges},
		{program: probesProgSendLength, tracepoint: "sock_send_length", after: true, lost: lostExchanges},
		{program: probesProgSendCall, function: "tcp_sendmsg", lost: lostExchanges},
	}
}

// attachAll attaches what it can, closing before opening: a socket is never
// tracked without somebody to forget it.
func (p *Probes) attachAll(k *kernel, spec *ebpf.CollectionSpec, forceSend string, admin bool) []event.Problem {
	var problems []event.Problem
	for _, h := range append([]*hook{stateHook()}, retransmitHooks()...) {
		if err := p.attach(k, spec, h); err != nil {
			problems = append(problems, problem(h.name(), h.lost, err, admin))
		}
	}
	if what, err := p.attachClock(k, spec, forceSend); err != nil {
		problems = append(problems, problem(what, lostExchanges, err, admin))
	}
	return problems
}

// attachClock attaches the receive hook and the best send hook that this
// kernel has and accepts; on failure it names the hook. Either both run or
// neither: without the receive hook every exchange would look unanswered.
func (p *Probes) attachClock(k *kernel, spec *ebpf.CollectionSpec, force string) (string, error) {
	var errs []error
	for _, send := range sendHooks() {
		if !send.present(k) || force != "" && force != send.name() {
			continue
		}
		after := uint8(0)
		if send.after {
			after = 1
		}
		if err := spec.Variables[probesVarSendHookAfter].Set(after); err != nil {
			return send.name(), err
		}
		receive := receiveHook()
		if err := p.attach(k, spec, receive); err != nil {
			return receive.name(), err
		}
		err := p.attach(k, spec, send)
		if err == nil {
			p.sendHook = send.name()
			return "", nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", send.name(), err), p.detach(receive))
	}
	if errs == nil {
		errs = []error{errNoHook}
	}
	return "send hook", errors.Join(errs...)
}

// detach undoes attach.
func (p *Probes) detach(h *hook) error {
	p.hooks = slices.DeleteFunc(p.hooks, func(other *hook) bool { return other == h })
	return h.close()
}

// attach loads one program with the shared maps and attaches it.
func (p *Probes) attach(k *kernel, spec *ebpf.CollectionSpec, h *hook) error {
	if !h.present(k) {
		return errNoHook
	}
	prog, err := p.loadProgram(k, spec, h)
	if err != nil {
		return err
	}
	h.prog = prog
	h.link, err = link.AttachTracing(link.TracingOptions{Program: prog})
	if err != nil {
		return errors.Join(err, prog.Close())
	}
	p.hooks = append(p.hooks, h)
	return nil
}

// loadProgram loads one program of the object alone.
func (p *Probes) loadProgram(k *kernel, spec *ebpf.CollectionSpec, h *hook) (*ebpf.Program, error) {
	alone := spec.Copy()
	alone.Programs = map[string]*ebpf.ProgramSpec{h.program: alone.Programs[h.program]}
	coll, err := ebpf.NewCollectionWithOptions(alone, ebpf.CollectionOptions{MapReplacements: p.maps, Cache: k.cache})
	if err != nil {
		return nil, err
	}
	defer coll.Close()
	return coll.DetachProgram(h.program), nil
}
