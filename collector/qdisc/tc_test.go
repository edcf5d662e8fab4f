package qdisc

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

// tcQdisc is one entry of `tc -s -j qdisc show invisible`, the independent
// reading that ours is compared with.
type tcQdisc struct {
	Kind       string `json:"kind"`
	Handle     string `json:"handle"`
	Dev        string `json:"dev"`
	Root       bool   `json:"root"`
	Parent     string `json:"parent"`
	Bytes      uint64 `json:"bytes"`
	Packets    uint64 `json:"packets"`
	Drops      uint64 `json:"drops"`
	Overlimits uint64 `json:"overlimits"`
	Requeues   uint64 `json:"requeues"`
	Backlog    uint64 `json:"backlog"`
	Qlen       uint64 `json:"qlen"`
}

// fromTC reads tc's JSON as the values that we should have read.
func fromTC(t *testing.T, doc []byte) []event.Qdisc {
	t.Helper()
	var list []tcQdisc
	if err := json.Unmarshal(doc, &list); err != nil {
		t.Fatalf("tc's JSON: %v", err)
	}
	out := make([]event.Qdisc, 0, len(list))
	for _, q := range list {
		parent := q.Parent
		switch {
		case q.Root:
			parent = "root"
		case parent == "ffff:fff1":
			parent = q.Kind // tc does not tell ingress from clsact
		}
		out = append(out, event.Qdisc{
			Device: q.Dev, Kind: q.Kind, Handle: q.Handle, Parent: parent,
			Bytes: q.Bytes, Packets: q.Packets, Drops: q.Drops, Requeues: q.Requeues,
			Overlimits: q.Overlimits, BacklogBytes: q.Backlog, QueuePackets: q.Qlen,
		})
	}
	return out
}

// differ compares readings, whatever their namespace and time.
func differ(want, got []event.Qdisc) string {
	got = append([]event.Qdisc(nil), got...)
	for i := range got {
		got[i].TimeNS, got[i].Netns = 0, ""
	}
	if len(want) == 0 {
		return "tc lists no qdisc"
	}
	return cmp.Diff(want, got)
}

// find returns the one qdisc of a device with that kind.
func find(list []event.Qdisc, device, kind, parent string) (event.Qdisc, error) {
	var found []event.Qdisc
	for _, q := range list {
		if q.Device == device && q.Kind == kind && q.Parent == parent {
			found = append(found, q)
		}
	}
	if len(found) != 1 {
		return event.Qdisc{}, fmt.Errorf("%d qdiscs %s on %s at %s, want 1", len(found), kind, device, parent)
	}
	return found[0], nil
}
