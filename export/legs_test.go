package export

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"grayfail/event"
)

func exchange(leg string) *event.Exchange {
	return &event.Exchange{Leg: leg, SendNS: startNS, Duration: 3 * time.Millisecond, Stall: time.Millisecond, ReplyBytes: 2048}
}

func TestOnlyEndedExchangesAreObserved(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Exchange(exchange("rpc-b"))
	open := exchange("rpc-b")
	open.Open = true // the look at it again when it ends is the one that counts
	m.Exchange(open)
	unanswered := exchange("rpc-b")
	unanswered.ReplyBytes = 0
	m.Exchange(unanswered)
	negative := exchange("rpc-b")
	negative.Duration = -1
	m.Exchange(negative)
	wantSamples(t, reg, []string{"tcp_exchange_seconds", "tcp_exchange_stall_seconds"}, map[string]float64{
		`tcp_exchange_seconds_count{leg="rpc-b"}`:       1,
		`tcp_exchange_seconds_sum{leg="rpc-b"}`:         0.003,
		`tcp_exchange_stall_seconds_count{leg="rpc-b"}`: 1,
		`tcp_exchange_stall_seconds_sum{leg="rpc-b"}`:   0.001,
	})
}

func TestConnectionsThatNeverCameUpHaveNoLifeSpan(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Connection(&event.Connection{Leg: "rpc-b", StartNS: startNS, EndNS: startNS + second, Established: true})
	m.Connection(&event.Connection{Leg: "rpc-b", StartNS: startNS, EndNS: startNS + 9*second})
	m.Connection(&event.Connection{Leg: "rpc-b", StartNS: startNS, EndNS: startNS - 9*second, Established: true})
	m.Connection(&event.Connection{Leg: "rpc-b", EndNS: startNS, Established: true}) // start not seen
	wantSamples(t, reg, []string{"tcp_connection_duration_seconds"}, map[string]float64{
		`tcp_connection_duration_seconds_count{leg="rpc-b"}`: 1,
		`tcp_connection_duration_seconds_sum{leg="rpc-b"}`:   1,
	})
}

func TestRetransmitKindsStandAtZeroOnlyWhereTheyWouldBeSeen(t *testing.T) {
	for name, c := range map[string]struct {
		status event.Status
		want   int
	}{
		"up":        {event.Status{Collector: "tcp_events", Availability: event.Up}, len(event.RetransmitKinds)},
		"degraded":  {event.Status{Collector: "tcp_events", Availability: event.Degraded}, 0},
		"failed":    {event.Status{Collector: "tcp_events", Availability: event.Failed}, 0},
		"not tried": {event.Status{Collector: "tcp_events"}, 0},
		"another":   {event.Status{Collector: "qdisc", Availability: event.Up}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, reg := newMetrics(t, Options{})
			m.Publish(&event.Snapshot{TimeNS: startNS, Legs: []event.Leg{{Name: "rpc-b"}}, Statuses: []event.Status{c.status}})
			got := samples(t, reg, "tcp_retransmits_total")
			if len(got) != c.want {
				t.Errorf("%d series, want %d: %v", len(got), c.want, got)
			}
			m.Retransmit(&event.Retransmit{Leg: "rpc-b", Kind: event.RetransmitRTO})
			got = samples(t, reg, "tcp_retransmits_total")
			if v := got[`tcp_retransmits_total{kind="rto",leg="rpc-b"}`]; v != 1 || len(got) != len(event.RetransmitKinds) {
				t.Errorf("rto %v of %d series, want 1 of %d", v, len(got), len(event.RetransmitKinds))
			}
		})
	}
}

func TestADegradedCollectorThatGivesRetransmitsSeesThemAll(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Retransmit(&event.Retransmit{Leg: "rpc-a", Kind: event.RetransmitRTO})
	m.Publish(&event.Snapshot{
		TimeNS: startNS, Legs: []event.Leg{{Name: "rpc-b"}},
		Statuses: []event.Status{{Collector: "tcp_events", Availability: event.Degraded}},
	})
	got := samples(t, reg, "tcp_retransmits_total")
	if v, ok := got[`tcp_retransmits_total{kind="rto",leg="rpc-b"}`]; !ok || v != 0 || len(got) != 2*len(event.RetransmitKinds) {
		t.Errorf("rpc-b has %v (there: %v) of %d series, want 0 of %d", v, ok, len(got), 2*len(event.RetransmitKinds))
	}
}

func TestLegsAreBounded(t *testing.T) {
	m, reg := newMetrics(t, Options{MaxLegs: 2})
	for i := range 5 {
		m.Exchange(exchange(fmt.Sprint("leg-", i)))
	}
	m.Exchange(exchange("leg-1"))
	m.Exchange(exchange("")) // not named: there is no leg to count it on, and no overflow either
	got := samples(t, reg, "tcp_exchange_seconds", "series_overflow_total")
	for name, want := range map[string]float64{
		`tcp_exchange_seconds_count{leg="leg-0"}`: 1,
		`tcp_exchange_seconds_count{leg="leg-1"}`: 2,
		`tcp_exchange_seconds_count{leg="other"}`: 4,
		`series_overflow_total`:                   3,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if len(got) != 3*2+1 {
		t.Errorf("%d samples, want 7", len(got))
	}
}

func TestForgetDeletesALegAndMakesRoom(t *testing.T) {
	m, reg := newMetrics(t, Options{MaxLegs: 1})
	m.Exchange(exchange("rpc-b")) // takes the room
	feedEverything(m)
	held := m.legs.get("rpc-b")
	m.Forget("rpc-b")
	names := []string{"tcp_exchange_seconds", "tcp_exchange_stall_seconds", "tcp_connection_duration_seconds", "tcp_retransmits_total"}
	for name := range samples(t, reg, append(names, "slow_excess_seconds_total")...) {
		if containsLeg(name, "rpc-b") {
			t.Errorf("%s is still there", name)
		}
	}
	m.Exchange(exchange("rpc-c"))
	if v := samples(t, reg)[`tcp_exchange_seconds_count{leg="rpc-c"}`]; v != 1 {
		t.Errorf("rpc-c has %v exchanges, want 1: the room was not given back", v)
	}
	// A handle that was looked up before must not bring the name back: there
	// is no room for it.
	m.legs.clockOf(held)
	m.legs.connectionOf(held)
	m.legs.retransmitsOf(held)
	m.legs.clockOf(&legSeries{name: "rpc-b"})
	for name := range samples(t, reg, names...) {
		if containsLeg(name, "rpc-b") {
			t.Errorf("%s came back", name)
		}
	}
	m.Forget("other")
	m.Forget("")
	m.Forget("never seen")
	if v := samples(t, reg)[`tcp_exchange_seconds_count{leg="rpc-c"}`]; v != 1 {
		t.Errorf("rpc-c has %v exchanges, want 1", v)
	}
}

func TestALegComesBackFromZeroAfterForget(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Exchange(exchange("rpc-b"))
	m.Exchange(exchange("rpc-b"))
	m.Forget("rpc-b")
	m.Exchange(exchange("rpc-b"))
	if v := samples(t, reg)[`tcp_exchange_seconds_count{leg="rpc-b"}`]; v != 1 {
		t.Errorf("%v exchanges, want 1", v)
	}
}

func TestLegsThatNoSnapshotHoldsAreForgotten(t *testing.T) {
	m, reg := newMetrics(t, Options{ForgetAfter: time.Minute})
	count := func() float64 { return samples(t, reg)[`tcp_exchange_seconds_count{leg="rpc-b"}`] }
	at := func(s int64, legs ...event.Leg) { m.Publish(&event.Snapshot{TimeNS: startNS + s*second, Legs: legs}) }
	leg := event.Leg{Name: "rpc-b"}

	m.Exchange(exchange("rpc-b"))
	for _, step := range []struct {
		seconds int64
		there   bool
		event   bool
		want    float64
		why     string
	}{
		{0, true, false, 1, "in the snapshot"},
		{300, true, false, 1, "still in the snapshot"},
		{350, false, false, 1, "missing for less than a minute: the collector may have failed"},
		{355, false, true, 2, "it has events"},
		{400, false, false, 2, "its last event is 45 s old"},
		{500, false, false, 0, "gone"},
	} {
		if step.event {
			m.Exchange(exchange("rpc-b"))
		}
		if step.there {
			at(step.seconds, leg)
		} else {
			at(step.seconds)
		}
		if got := count(); got != step.want {
			t.Errorf("after %d s: %v exchanges, want %v: %s", step.seconds, got, step.want, step.why)
		}
	}
}

func containsLeg(name, leg string) bool {
	return len(name) > 0 && strings.Contains(name, fmt.Sprintf("leg=%q", leg))
}

// What the kernel event path costs: the target is at most 300 ns and no
// allocation an exchange.
func BenchmarkExchange(b *testing.B) {
	m, _ := newMetrics(b, Options{})
	names := make([]*event.Exchange, 16)
	for i := range names {
		names[i] = exchange(fmt.Sprintf("10.77.2.%d:50052", i))
		names[i].Duration = time.Duration(1+i) * 137 * time.Microsecond
		m.Exchange(names[i])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Exchange(names[i%len(names)])
	}
}

func BenchmarkRetransmit(b *testing.B) {
	m, _ := newMetrics(b, Options{})
	r := &event.Retransmit{Leg: "rpc-b", Kind: event.RetransmitTLP}
	b.ReportAllocs()
	for b.Loop() {
		m.Retransmit(r)
	}
}

func TestKernelEventsDoNotAllocate(t *testing.T) {
	m, _ := newMetrics(t, Options{})
	x := exchange("rpc-b")
	r := &event.Retransmit{Leg: "rpc-b", Kind: event.RetransmitTLP}
	c := &event.Connection{Leg: "rpc-b", StartNS: startNS, EndNS: startNS + second, Established: true}
	all := func() { m.Exchange(x); m.Retransmit(r); m.Connection(c) }
	all()
	if n := testing.AllocsPerRun(100, all); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
