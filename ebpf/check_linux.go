package ebpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// Check does once what the programs' owner goes on doing while they run:
// change what is watched, read the table of sockets and the counters. It tells
// whether that works for a caller with fewer capabilities: before 5.19 the
// kernel asks CAP_BPF of every bpf(2) call where kernel.unprivileged_bpf_disabled
// is set (commit c8644cd0efe7), since then of making maps and programs only.
func (p *Probes) Check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.maps == nil {
		return nil
	}
	if err := p.watch(p.watched.ports, p.watched.namespaces); err != nil {
		return err
	}
	if err := p.maps[probesMapNamespaces].Delete(uint32(0)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("stop watching: %w", err)
	}
	if _, err := p.scan.read(p.maps[probesMapSockets]); err != nil {
		return err
	}
	var perCPU []uint64
	if err := p.maps[probesMapLost].Lookup(uint32(lostRing), &perCPU); err != nil {
		return fmt.Errorf("counters: %w", err)
	}
	for _, h := range p.hooks {
		if _, err := h.prog.Stats(); err != nil {
			return fmt.Errorf("%s: %w", h.name(), err)
		}
	}
	return nil
}
