package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"grayfail/lab"
)

// qdisc is a queueing discipline at the root of a device: netem or tbf.
type qdisc struct {
	ns     lab.Namespace
	device string
	kind   string
	args   []string
}

func (q *qdisc) apply(ctx context.Context) error {
	_, err := q.ns.Exec(ctx, "tc", append([]string{"qdisc", "add", "dev", q.device, "root", "handle", handle, q.kind}, q.args...)...)
	return err
}

// handle marks the disciplines that are ours: no other is ever removed.
const handle = "f417:"

// clear removes it if it is there, and nothing else.
func (q *qdisc) clear(ctx context.Context) error {
	if gone(ctx, q.ns, q.device) {
		return nil
	}
	found, err := q.read(ctx)
	if err != nil || found == nil {
		return err
	}
	_, err = q.ns.Exec(ctx, "tc", "qdisc", "del", "dev", q.device, "root", "handle", handle)
	return err
}

// listed is what tc prints of a discipline.
type listed struct {
	Kind       string `json:"kind"`
	Handle     string `json:"handle"`
	Packets    uint64 `json:"packets"`
	Drops      uint64 `json:"drops"`
	Overlimits uint64 `json:"overlimits"`
}

// read gives our discipline, or nil.
func (q *qdisc) read(ctx context.Context) (*listed, error) {
	out, err := q.ns.Exec(ctx, "tc", "-s", "-j", "qdisc", "show", "dev", q.device)
	if err != nil {
		return nil, err
	}
	return parseQdiscs([]byte(out))
}

func parseQdiscs(out []byte) (*listed, error) {
	var all []listed
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("tc -j qdisc show: %w", err)
	}
	for i := range all {
		if all[i].Handle == handle {
			return &all[i], nil
		}
	}
	return nil, nil
}

// count: netem that loses is proved by its drops; what only delays, by the
// packets that went through it; tbf by those that had to wait or were dropped.
func (q *qdisc) count(ctx context.Context) (count, error) {
	found, err := q.read(ctx)
	if err != nil {
		return count{}, err
	}
	if found == nil {
		return count{}, fmt.Errorf("%s is not on %s any more", q.kind, q.device)
	}
	seen := found.Packets + found.Drops
	c := count{Acted: float64(found.Packets), Total: float64(seen), Unit: "packets", Drops: &found.Drops, Packets: &seen}
	switch {
	case q.kind == "tbf":
		c.Acted, c.Unit = float64(found.Overlimits+found.Drops), "packets that waited or were dropped"
	case strings.Contains(strings.Join(q.args, " "), "loss"):
		c.Acted, c.Unit = float64(found.Drops), "packets dropped"
	}
	return c, nil
}

// commands are the operator's own.
type commands struct{ applying, clearing, counting []string }

func (c *commands) apply(ctx context.Context) error { _, err := command(ctx, c.applying); return err }
func (c *commands) clear(ctx context.Context) error { _, err := command(ctx, c.clearing); return err }

func (c *commands) count(ctx context.Context) (count, error) {
	out, err := command(ctx, c.counting)
	if err != nil {
		return count{}, err
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil {
		return count{}, fmt.Errorf("%s printed %.40q, not a number", c.counting[0], out)
	}
	return count{Acted: v, Unit: "by your counter"}, nil
}

func command(ctx context.Context, argv []string) (string, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	if err != nil {
		said := ""
		if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output wraps nothing
			said = ": " + strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("%s: %w%s", strings.Join(argv, " "), err, said)
	}
	return string(out), nil
}
