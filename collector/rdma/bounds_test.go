package rdma

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"grayfail/collector/rdma/nldev"
	"grayfail/event"
)

// A kernel that lists more than anybody has: what is beyond a bound is said and
// left out.
func TestTablesAreBounded(t *testing.T) {
	one := map[uint32]string{rxeIndex: "6.1-rxe"}
	usual := mustCollect(t, testCollector(t, newKernel(t, one), Options{}), 0, "")
	for _, tt := range []struct {
		op    nldev.Op
		count func(r *event.RDMA) int
		bound int
	}{
		{nldev.OpGet, func(r *event.RDMA) int { return len(r.Ports) }, maxDevices}, // of one port each
		{nldev.OpPortGet, func(r *event.RDMA) int { return len(r.Ports) }, maxPorts},
		{nldev.OpResQPGet, func(r *event.RDMA) int { return len(r.QueuePairs) }, maxQueuePairs},
	} {
		k := newKernel(t, one)
		k.copies = map[nldev.Op]int{tt.op: tt.bound/tt.count(&usual) + 1}
		r := mustCollect(t, testCollector(t, k, Options{}), 0, ReasonOverflow)
		if n := tt.count(&r); n != tt.bound {
			t.Errorf("operation %d: %d kept, want %d", tt.op, n, tt.bound)
		}
	}
}

// renumbered gives the queue pairs of a message other numbers: those of one
// number count once.
func renumbered(data []byte, from uint32) []byte {
	lqpn := []byte{8, 0, 21, 0} // an attribute of 4 bytes, RDMA_NLDEV_ATTR_RES_LQPN
	data = slices.Clone(data)
	for at := 0; ; from++ {
		next := bytes.Index(data[at:], lqpn)
		if next < 0 {
			return data
		}
		at += next + len(lqpn)
		binary.NativeEndian.PutUint32(data[at:], from)
	}
}
