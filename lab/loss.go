package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Loss drops packets at random where they ARRIVE: a drop at a netdev ingress
// hook is a true loss in the network. On the way out the kernel would tell the
// sender, who would not retransmit.
//
// A packet is what crosses the veth pair, up to 64 kB before segmentation.
type Loss struct {
	Link        Link
	Coordinator Namespace
	Direction   Direction
	Percent     float64 // steps of 0.01
	applied     bool
}

// NewLoss drops percent of what one leg carries in one direction.
func (c *Cluster) NewLoss(leg string, d Direction, percent float64) (*Loss, error) {
	l, err := c.Link(leg)
	if err != nil {
		return nil, err
	}
	if percent < 0.01 || percent > 100 {
		return nil, fmt.Errorf("loss of %g%%: 0.01 to 100 is possible", percent)
	}
	return &Loss{Link: l, Coordinator: c.Coordinator, Direction: d, Percent: percent}, nil
}

func (f *Loss) String() string {
	return fmt.Sprintf("loss of %g%% of %s of %s", f.Percent, f.Direction, f.Link.Leg)
}

// at is where the packets arrive.
func (f *Loss) at() (Namespace, string) {
	if f.Direction == Requests {
		return f.Link.Worker, f.Link.WorkerDevice
	}
	return f.Coordinator, f.Link.CoordinatorDevice
}

func (f *Loss) table() string {
	_, device := f.at()
	return "gf_lab_loss_" + strings.ReplaceAll(device, "-", "_")
}

// Apply adds one table with one chain. The statements stand on lines of their
// own: nft 1.0 refuses a one-line chain with a device.
func (f *Loss) Apply(ctx context.Context) error {
	ns, device := f.at()
	some := fmt.Sprintf("numgen random mod 10000 < %d ", int(f.Percent*100+0.5))
	if f.Percent >= 100 { // nft refuses a comparison that is always true
		some = ""
	}
	rules := fmt.Sprintf(`table netdev %s {
	chain ingress {
		type filter hook ingress device "%s" priority 0
		policy accept
		counter
		%scounter drop
	}
}
`, f.table(), device, some)
	_, err := ns.Script(ctx, rules, "nft", "-f", "-")
	f.applied = err == nil
	return err
}

// Acted reads the rule's counter: dropped packets of all that arrived.
func (f *Loss) Acted() (Evidence, error) {
	ctx, cancel := clearContext()
	defer cancel()
	ns, _ := f.at()
	out, err := ns.Exec(ctx, "nft", "-j", "list", "table", "netdev", f.table())
	if err != nil {
		return Evidence{}, err
	}
	counts, err := nftCounters([]byte(out))
	if err != nil || len(counts) != 2 {
		return Evidence{}, fmt.Errorf("%s: %d counters of 2: %w", f, len(counts), err)
	}
	return evidence(f, Evidence{What: "packets dropped", Count: counts[1], Total: counts[0]})
}

// nftCounters gives the packet counts of the rules in their order.
func nftCounters(listing []byte) ([]uint64, error) {
	var doc struct {
		Nftables []struct {
			Rule struct {
				Expr []struct {
					Counter *struct {
						Packets uint64 `json:"packets"`
					} `json:"counter"`
				} `json:"expr"`
			} `json:"rule"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(listing, &doc); err != nil {
		return nil, fmt.Errorf("nft listing: %w", err)
	}
	var out []uint64
	for _, item := range doc.Nftables {
		for _, e := range item.Rule.Expr {
			if e.Counter != nil {
				out = append(out, e.Counter.Packets)
			}
		}
	}
	return out, nil
}

// Clear removes the table.
func (f *Loss) Clear() error {
	if !f.applied {
		return nil
	}
	ctx, cancel := clearContext()
	defer cancel()
	return f.Remove(ctx)
}

// Remove takes the table away, also one that an earlier process left: adding
// what is there is no error, so that none that is missing is deleted.
func (f *Loss) Remove(ctx context.Context) error {
	f.applied = false
	ns, _ := f.at()
	_, err := ns.Script(ctx, fmt.Sprintf("add table netdev %[1]s\ndelete table netdev %[1]s\n", f.table()), "nft", "-f", "-")
	return err
}
