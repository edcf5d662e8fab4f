package lab

import (
	"context"
	"encoding/json"
	"fmt"
)

// RateLimit is a token bucket (tbf) on the sending device of one direction. Its
// queue is deep: it delays and does not drop, unless QueueBytes says less.
type RateLimit struct {
	Link        Link
	Coordinator Namespace
	Direction   Direction
	BitsPerSec  uint64
	QueueBytes  int // default 1 MB
	applied     bool
}

// NewRateLimit limits one leg in one direction.
func (c *Cluster) NewRateLimit(leg string, d Direction, bitsPerSec uint64) (*RateLimit, error) {
	l, err := c.Link(leg)
	if err != nil {
		return nil, err
	}
	if bitsPerSec < 8000 {
		return nil, fmt.Errorf("rate limit of %d bit/s: 8000 at least", bitsPerSec)
	}
	return &RateLimit{Link: l, Coordinator: c.Coordinator, Direction: d, BitsPerSec: bitsPerSec, QueueBytes: 1 << 20}, nil
}

func (f *RateLimit) String() string {
	return fmt.Sprintf("%s of %s limited to %g Mbit/s", f.Direction, f.Link.Leg, float64(f.BitsPerSec)/1e6)
}

func (f *RateLimit) at() (Namespace, string) {
	if f.Direction == Requests {
		return f.Coordinator, f.Link.CoordinatorDevice
	}
	return f.Link.Worker, f.Link.WorkerDevice
}

// Apply: the burst is one GSO packet, or tbf would have to segment each.
func (f *RateLimit) Apply(ctx context.Context) error {
	ns, device := f.at()
	_, err := ns.Exec(ctx, "tc", "qdisc", "add", "dev", device, "root", "tbf",
		"rate", fmt.Sprintf("%dbit", f.BitsPerSec), "burst", "65536", "limit", fmt.Sprint(f.QueueBytes))
	f.applied = err == nil
	return err
}

// Acted reads the qdisc's overlimits: how often a packet had to wait.
func (f *RateLimit) Acted() (Evidence, error) {
	ctx, cancel := clearContext()
	defer cancel()
	ns, device := f.at()
	out, err := ns.Exec(ctx, "tc", "-s", "-j", "qdisc", "show", "dev", device, "root")
	if err != nil {
		return Evidence{}, err
	}
	var qdiscs []struct {
		Kind       string `json:"kind"`
		Packets    uint64 `json:"packets"`
		Overlimits uint64 `json:"overlimits"`
	}
	if err := json.Unmarshal([]byte(out), &qdiscs); err != nil {
		return Evidence{}, fmt.Errorf("tc listing: %w", err)
	}
	for _, q := range qdiscs {
		if q.Kind == "tbf" {
			return evidence(f, Evidence{What: "times a packet had to wait", Count: q.Overlimits})
		}
	}
	return Evidence{}, fmt.Errorf("%s: no tbf on %s: %w", f, device, ErrDidNotAct)
}

// Clear removes the qdisc.
func (f *RateLimit) Clear() error {
	if !f.applied {
		return nil
	}
	f.applied = false
	ctx, cancel := clearContext()
	defer cancel()
	ns, device := f.at()
	_, err := ns.Exec(ctx, "tc", "qdisc", "del", "dev", device, "root")
	return err
}
