// Package bound keeps names that outsiders choose (models, legs, sources) from
// growing tables without limit.
//
// In: any name. Out: the name itself while there is room, else Other, counted.
package bound

import "sync"

// Other stands for every name that did not fit.
const Other = "other"

// Names is a set of at most max names. Safe for concurrent use.
type Names struct {
	mu       sync.Mutex
	max      int
	names    map[string]struct{}
	overflow uint64
}

// New returns a set that admits max names.
func New(max int) *Names {
	return &Names{max: max, names: make(map[string]struct{})}
}

// Admit returns name if it is known or there is room for it, else Other.
func (n *Names) Admit(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.names[name]; known {
		return name
	}
	if len(n.names) >= n.max {
		n.overflow++
		return Other
	}
	n.names[name] = struct{}{}
	return name
}

// Overflow is how often a name did not fit.
func (n *Names) Overflow() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.overflow
}
