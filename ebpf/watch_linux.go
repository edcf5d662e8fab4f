package ebpf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
)

// watched is what the kernel's tables hold now.
type watched struct {
	ports      []uint16
	namespaces []uint32
}

func (w *watched) has(port uint16, namespace uint32) bool {
	return slices.Contains(w.ports, port) && slices.Contains(w.namespaces, namespace)
}

// Watch replaces the ports and namespaces to watch while the programs run.
// Sockets that are no longer watched are forgotten at the next Open. With more
// than MaxNamespaces nothing changes and the error is a *LimitError.
func (p *Probes) Watch(ports []uint16, namespaces []uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watch(ports, namespaces)
}

func (p *Probes) watch(ports []uint16, namespaces []uint32) error {
	next := watched{unique(ports), unique(namespaces)}
	if len(next.namespaces) > MaxNamespaces {
		return &LimitError{"namespaces", len(next.namespaces), MaxNamespaces}
	}
	if p.maps == nil {
		return nil
	}
	// Tables can be full: what goes makes room first.
	err := errors.Join(
		setPorts(p.maps[probesMapPorts], p.watched.ports, next.ports),
		replace(p.maps[probesMapNamespaces], p.watched.namespaces, next.namespaces),
	)
	if err != nil {
		return err
	}
	p.watched = next
	return nil
}

// setPorts makes the port bits those of next; only words that held or will
// hold a bit are written.
func setPorts(m *ebpf.Map, now, next []uint16) error {
	words := map[uint32]uint64{}
	for _, port := range now {
		words[uint32(port)/64] = 0
	}
	for _, port := range next {
		words[uint32(port)/64] |= 1 << (port % 64)
	}
	for word, bits := range words {
		if err := m.Put(word, bits); err != nil {
			return fmt.Errorf("watch ports from %d: %w", word*64, err)
		}
	}
	return nil
}

// replace makes a set map hold next instead of now.
func replace(m *ebpf.Map, now, next []uint32) error {
	for _, k := range now {
		if slices.Contains(next, k) {
			continue
		}
		if err := m.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("stop watching %d: %w", k, err)
		}
	}
	for _, k := range next {
		if err := m.Put(k, uint8(1)); err != nil {
			return fmt.Errorf("watch %d: %w", k, err)
		}
	}
	return nil
}

func unique[K uint16 | uint32](in []K) []K {
	out := slices.Clone(in)
	slices.Sort(out)
	return slices.Compact(out)
}
