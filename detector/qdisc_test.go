package detector

import (
	"fmt"
	"testing"

	"grayfail/event"
)

// The children of a multiqueue root share handle 0: each has its own counters.
func TestQueuesOfMultiqueueRoot(t *testing.T) {
	var d drops
	for i := range int64(10) {
		now := 1_800_000_000e9 + i*1e9
		d.read(&event.Qdisc{TimeNS: now, Device: "eth0", Kind: "mq", Handle: "8001:", Parent: "root", Packets: uint64(100 * i)})
		for child := range int64(4) {
			d.read(&event.Qdisc{
				TimeNS: now + child, Device: "eth0", Kind: "fq_codel", Handle: "0:", Parent: fmt.Sprintf("8001:%d", 1+child),
				Packets: uint64(1000*child + 25*i), Drops: uint64(7 * child), // old drops
			})
		}
		// Another kind under one parent: it was replaced.
		d.read(&event.Qdisc{TimeNS: now + 9, Device: "eth0", Kind: "fq", Handle: "0:", Parent: "8001:1", Packets: 1e6, Drops: 1e6})
	}
	packets, dropped, known := d.during("", "eth0", 1_800_000_000e9, 1_800_000_010e9)
	if packets != 900 || dropped != 0 || !known {
		t.Errorf("%d packets, %d drops, %v; want the 900 of the root and no drop", packets, dropped, known)
	}
	if _, _, known := d.during("pod", "eth0", 1_800_000_000e9, 1_800_000_010e9); known {
		t.Error("a device of the same name in another namespace was read")
	}
}

// A full table takes no more, says so, and gives the place of what is read no
// more to what comes.
func TestQueuesAgeOut(t *testing.T) {
	d := New(DefaultConfig())
	const start = int64(1_800_000_000e9)
	read := func(i int, at int64) {
		d.Qdisc(event.Qdisc{TimeNS: at, Device: fmt.Sprint("dev", i), Kind: "fq", Handle: "1:", Packets: uint64(at - start)})
	}
	for i := range maxQueues + 50 {
		read(i, start)
	}
	if s := d.Stats(); s.QueuesOverflow != 50 || s.Queues != maxQueues {
		t.Errorf("%d overflowed, %d kept; want 50, %d", s.QueuesOverflow, s.Queues, maxQueues)
	}
	later := start + int64(queueIdle)
	read(0, later-1e9)
	read(2000, later)
	read(2000, later+1e9)
	if s := d.Stats(); s.QueuesOverflow != 50 || s.Queues != 2 {
		t.Errorf("%d overflowed, %d kept; want no more than before, and the two that are read", s.QueuesOverflow, s.Queues)
	}
	for _, name := range []string{"dev0", "dev2000"} {
		if _, _, known := d.drops.during("", name, start, later+2e9); !known {
			t.Errorf("%s is not known", name)
		}
	}
	if len(d.drops.byDevice) != 2 {
		t.Errorf("%d devices in the index, want 2", len(d.drops.byDevice))
	}
}
