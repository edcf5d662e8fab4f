package ebpf

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"grayfail/internal/testkit"
)

// TestRingFull: what the ring cannot hold is counted, to the event.
func TestRingFull(t *testing.T) {
	l := newLab(t)
	opts := l.options("")
	opts.RingBytes = 1 // one page
	p := load(t, opts)
	client, server := l.dial(t, families[0], labPort)
	const turns = 60 // one exchange each, 168 bytes in the ring
	for range turns {
		turn(client, server)
	}
	got := len(drain(t, p).Exchanges)
	lost := p.Losses().Ring
	if got == 0 || lost == 0 || uint64(got)+lost != turns {
		t.Errorf("%d exchanges and %d lost, want %d together", got, lost, turns)
	}
	if p.Lost() != lost {
		t.Errorf("Lost() %d, want %d", p.Lost(), lost)
	}
	turn(client, server) // drained, it takes events again
	one(t, drain(t, p))
}

// TestSocketsFull: a socket that finds the table full is counted, and tracked
// once there is room.
func TestSocketsFull(t *testing.T) {
	l := newLab(t)
	opts := l.options("")
	opts.MaxSockets = 1
	p := load(t, opts)
	first, firstServer := l.dial(t, families[0], labPort)
	second, secondServer := l.dial(t, families[0], labPort)
	turn(first, firstServer)
	turn(second, secondServer)
	events := drain(t, p)
	if e := one(t, events); e.Flow.Local.Port() != portOf(t, first.fd) {
		t.Errorf("exchange %+v is not the first socket's", e)
	}
	l1 := p.Losses()
	if l1.Sockets == 0 || l1.Ring != 0 || p.Lost() != l1.Sockets {
		t.Errorf("losses %+v, Lost() %d", l1, p.Lost())
	}
	first.reset()
	turn(second, secondServer)
	drain(t, p)
	turn(second, secondServer)
	if e := one(t, drain(t, p)); e.Flow.Local.Port() != portOf(t, second.fd) {
		t.Errorf("exchange %+v is not the second socket's", e)
	}
}

// TestEviction moves the clock: a socket whose closing nobody reported leaves
// the table by age, its exchange is reported as ended once.
func TestEviction(t *testing.T) {
	l := newLab(t)
	var ahead atomic.Int64
	opts := l.options("")
	opts.MaxSockets = 8
	opts.Clock = NewClock(
		func() int64 { return readMonotonic() + ahead.Load() },
		func() int64 { return time.Now().UnixNano() },
	)
	p := load(t, opts)
	client, server := l.dial(t, families[0], labPort)
	client.send(100)
	server.receive(100)
	server.send(200)
	client.receive(200)

	ahead.Store(int64(idleLimit - time.Minute))
	if e := one(t, openNow(t, p)); !e.Open {
		t.Errorf("dropped before its time: %+v", e)
	}
	ahead.Store(int64(idleLimit + time.Minute))
	if e := one(t, openNow(t, p)); e.Open || e.ReplyBytes != 200 {
		t.Errorf("dropped: %+v, want an ended exchange", e)
	}
	none(t, openNow(t, p))
	if n, _ := p.Sockets(); n != 0 || p.Losses().Evicted != 1 || p.Lost() != 0 {
		t.Errorf("%d sockets, losses %+v", n, p.Losses())
	}

	// Nearly full: idle for a minute is enough.
	ahead.Store(0)
	for range 7 {
		c, s := l.dial(t, families[0], labPort)
		turn(c, s)
	}
	drain(t, p)
	ahead.Store(int64(crowdedLimit - time.Second))
	if n := len(openNow(t, p).Exchanges); n != 7 {
		t.Errorf("%d open exchanges, want 7", n)
	}
	ahead.Store(int64(crowdedLimit + time.Minute))
	openNow(t, p)
	if n, _ := p.Sockets(); n != 0 || p.Losses().Evicted != 8 {
		t.Errorf("%d sockets, losses %+v", n, p.Losses())
	}
}

// TestClockStep: the wall clock steps between the looks at an exchange and its
// end; it stays one exchange, with the same duration.
func TestClockStep(t *testing.T) {
	l := newLab(t)
	var step atomic.Int64
	opts := l.options("")
	opts.Clock = NewClock(readMonotonic, func() int64 { return time.Now().UnixNano() + step.Load() })
	p := load(t, opts)
	client, server := l.dial(t, families[0], labPort)
	client.send(100)
	server.receive(100)
	server.send(200)
	client.receive(200)
	look := one(t, openNow(t, p))
	step.Store(-int64(time.Hour))
	again := one(t, openNow(t, p))
	client.send(100)
	next := one(t, openNow(t, p))
	end := one(t, drain(t, p))
	if again.SendNS != look.SendNS || end.SendNS != look.SendNS || end.Duration != look.Duration {
		t.Errorf("looks at %d, %d, end at %d; durations %v, %v", look.SendNS, again.SendNS, end.SendNS, look.Duration, end.Duration)
	}
	if end.Duration <= 0 || next.Duration <= 0 || next.SendNS > look.SendNS-int64(time.Minute) {
		t.Errorf("end %+v, next %+v", end, next)
	}
	server.receive(100)
	client.close()
	server.close()
	var events Events
	eventually(t, "the connection", func() bool {
		if err := p.Drain(&events); err != nil {
			t.Fatal(err)
		}
		return len(events.Connections) > 0
	})
	if c := events.Connections[0]; c.EndNS < c.StartNS {
		t.Errorf("ended before it started: %+v", c)
	}
}

// TestUnprivileged: without capabilities nothing runs, and it says why.
func TestUnprivileged(t *testing.T) {
	testkit.RequireRoot(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // capabilities are the thread's; it ends here
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var nothing [2]unix.CapUserData
		if err := unix.Capset(&header, &nothing[0]); err != nil {
			t.Error(err)
			return
		}
		p, problems := Load(Options{Ports: []uint16{labPort}, Namespaces: []uint32{1}})
		if len(problems) != 1 || problems[0].Reason != ReasonNoPermission || problems[0].Detail == "" {
			t.Errorf("problems %+v", problems)
		}
		checkIdle(t, p)
	}()
	<-done
}

// checkIdle: every method of probes that do not run can be called.
func checkIdle(t *testing.T, p *Probes) {
	t.Helper()
	var e Events
	n, err := p.Sockets()
	if p.Available() || p.SendHook() != "" || p.Lost() != 0 || len(p.Stats()) != 0 || n != 0 || err != nil {
		t.Errorf("available %t, hook %q, lost %d, stats %v, sockets %d, %v", p.Available(), p.SendHook(), p.Lost(), p.Stats(), n, err)
	}
	if err := p.Drain(&e); err != nil {
		t.Error(err)
	}
	if err := p.Open(&e); err != nil {
		t.Error(err)
	}
	if err := p.Watch([]uint16{1}, []uint32{2}); err != nil {
		t.Error(err)
	}
	none(t, e)
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPartial: without a send hook the other programs work, and the receive
// hook does not run in vain.
func TestPartial(t *testing.T) {
	l := newLab(t)
	p, problems := Load(l.options("no such hook"))
	t.Cleanup(func() { _ = p.Close() })
	if len(problems) != 1 || problems[0].Reason != ReasonNotSupported || p.SendHook() != "" || !p.Available() {
		t.Fatalf("problems %+v, send hook %q, available %t", problems, p.SendHook(), p.Available())
	}
	for _, s := range p.Stats() {
		if s.Name == receiveHook().name() {
			t.Error("the receive hook runs alone: every exchange would look unanswered")
		}
	}
	client, server := l.dial(t, families[0], labPort)
	turn(client, server)
	none(t, openNow(t, p))
	client.reset()
	if e := drain(t, p); len(e.Connections) != 1 || len(e.Exchanges) != 0 {
		t.Errorf("events %+v", e)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	checkIdle(t, p)
}

// TestStats: every program is named, and the kernel measures while asked to.
func TestStats(t *testing.T) {
	l := newLab(t)
	p := load(t, l.options(""))
	measuring, err := EnableStats()
	if err != nil {
		t.Fatal(err)
	}
	defer measuring.Close()
	client, server := l.dial(t, families[0], labPort)
	turn(client, server)
	stats := map[string]ProgramStats{}
	for _, s := range p.Stats() {
		stats[s.Name] = s
	}
	if len(stats) != 5 {
		t.Errorf("%d programs: %v", len(stats), stats)
	}
	for _, name := range []string{p.SendHook(), "tp_btf/tcp_probe", "tp_btf/inet_sock_set_state"} {
		if s := stats[name]; s.Runs == 0 || s.RunTime <= 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
