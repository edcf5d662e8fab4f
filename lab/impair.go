package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Impair turns the packet relay of a leg against one direction.
type Impair struct {
	Leg       string
	Direction Direction
	Impairment
	way *way
}

// NewImpair needs a cluster that was started with Relay.
func (c *Cluster) NewImpair(leg string, d Direction, i Impairment) (*Impair, error) {
	at := slices.IndexFunc(c.Links, func(l Link) bool { return l.Leg == leg })
	if at < 0 {
		return nil, fmt.Errorf("no leg %q: there are %s, %s", leg, LegA, LegB)
	}
	if at >= len(c.relays) {
		return nil, errors.New("the cluster runs without packet relay: start it with Options.Relay")
	}
	if i == (Impairment{}) {
		return nil, errors.New("an impairment without any effect")
	}
	if i.Reorder > 0 && i.Delay == 0 {
		return nil, errors.New("reordering needs a delay to overtake")
	}
	return &Impair{Leg: leg, Direction: d, Impairment: i, way: c.relays[at].ways[d]}, nil
}

func (f *Impair) String() string {
	var what []string
	if f.Delay > 0 || f.Jitter > 0 {
		s := fmt.Sprintf("delay of %v", f.Delay)
		if f.Jitter > 0 {
			s += fmt.Sprintf(" +- %v", f.Jitter)
		}
		what = append(what, s)
	}
	for _, p := range []struct {
		name    string
		percent float64
	}{{"loss", f.Loss}, {"duplicates", f.Duplicate}, {"reordering", f.Reorder}} {
		if p.percent > 0 {
			what = append(what, fmt.Sprintf("%s of %g%%", p.name, p.percent))
		}
	}
	return fmt.Sprintf("%s of %s of %s", strings.Join(what, ", "), f.Direction, f.Leg)
}

// Apply sets the relay.
func (f *Impair) Apply(context.Context) error {
	f.way.set(f.Impairment)
	return nil
}

// Acted counts the packets that did not pass as they came.
func (f *Impair) Acted() (Evidence, error) {
	return evidence(f, Evidence{What: "packets impaired", Count: f.way.acted.Load(), Total: f.way.packets.Load()})
}

// Clear lets packets pass at once; those on their way arrive first.
func (f *Impair) Clear() error {
	f.way.set(Impairment{})
	return nil
}

// Delay is the impairment of a longer way.
func Delay(d time.Duration) Impairment { return Impairment{Delay: d} }
