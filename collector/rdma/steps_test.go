package rdma

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

func TestSteps(t *testing.T) {
	reading := func(atNS int64, values ...uint64) *event.RDMA {
		r := &event.RDMA{TimeNS: atNS}
		for i, name := range []string{"local_ack_timeout_err", "out_of_sequence", "rx_write_requests"} {
			if i < len(values) {
				r.Counters = append(r.Counters, event.RDMACounter{Device: "mlx5_0", Port: 2, Event: name, Value: values[i]})
			}
		}
		return r
	}
	step := func(fromNS, toNS int64, name string, meaning Meaning, count uint64) event.RDMAStep {
		return event.RDMAStep{FromNS: fromNS, TimeNS: toNS, Device: "mlx5_0", Port: 2, Event: name, Meaning: meaning, Count: count}
	}
	var s Steps
	for _, c := range []struct {
		why     string
		reading *event.RDMA
		want    []event.RDMAStep
	}{
		{"the first has no past", reading(10, 5, 7, 100), nil},
		{"nothing moved that means anything", reading(20, 5, 7, 900), nil},
		{"both moved", reading(30, 6, 9, 901), []event.RDMAStep{
			step(20, 30, "local_ack_timeout_err", Timeout, 1), step(20, 30, "out_of_sequence", OutOfSequence, 2),
		}},
		{"one was reset", reading(40, 0, 10), []event.RDMAStep{step(30, 40, "out_of_sequence", OutOfSequence, 1)}},
		{"the device is gone", reading(50), nil},
		{"and back", reading(60, 3, 3), nil},
		{"and moves", reading(70, 4, 3), []event.RDMAStep{step(60, 70, "local_ack_timeout_err", Timeout, 1)}},
		{"the clock stepped back", reading(65, 9, 3), nil},
		{"and goes on", reading(75, 10, 3), []event.RDMAStep{step(65, 75, "local_ack_timeout_err", Timeout, 1)}},
	} {
		if diff := cmp.Diff(c.want, s.Next(c.reading)); diff != "" {
			t.Errorf("%s:\n%s", c.why, diff)
		}
	}
}
