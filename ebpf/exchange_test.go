package ebpf

import (
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"grayfail/event"
)

// forEachHook runs a test with every send hook of this kernel. The function
// entry may be refused (a kernel without BPF trampolines) where a tracepoint
// does the same; a kernel on which nothing works fails.
func forEachHook(t *testing.T, f func(t *testing.T, hook string)) {
	k, err := openKernel()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, h := range sendHooks() {
		if !h.present(k) || h.tracepoint == "" && tried > 0 && !accepted(h.name()) {
			continue
		}
		tried++
		t.Run(strings.NewReplacer("tp_btf/", "", "/", "_").Replace(h.name()), func(t *testing.T) { f(t, h.name()) })
	}
	if tried == 0 {
		t.Fatal("this kernel has no send hook")
	}
}

// accepted says whether the kernel runs a send hook.
func accepted(hook string) bool {
	p, _ := Load(Options{sendHook: hook})
	defer p.Close()
	return p.SendHook() == hook
}

func (l *lab) options(hook string) Options {
	return Options{Ports: []uint16{labPort}, Namespaces: []uint32{l.clientInode}, sendHook: hook}
}

// one expects exactly one exchange.
func one(t *testing.T, e Events) event.Exchange {
	t.Helper()
	if len(e.Exchanges) != 1 {
		t.Fatalf("%d exchanges, want 1: %+v", len(e.Exchanges), e.Exchanges)
	}
	return e.Exchanges[0]
}

func none(t *testing.T, e Events) {
	t.Helper()
	if len(e.Exchanges)+len(e.Retransmits)+len(e.Connections) != 0 {
		t.Fatalf("want no event: %+v", e)
	}
}

// TestExchange drives exchanges of known shapes over one connection.
func TestExchange(t *testing.T) {
	l := newLab(t)
	forEachHook(t, func(t *testing.T, hook string) {
		for _, fam := range families {
			t.Run(fam.name, func(t *testing.T) { testExchange(t, l, hook, fam) })
		}
	})
}

func testExchange(t *testing.T, l *lab, hook string, fam family) {
	p := load(t, l.options(hook))
	if p.SendHook() != hook {
		t.Fatalf("send hook %q, want %q", p.SendHook(), hook)
	}
	client, server := l.dial(t, fam, labPort)
	none(t, drain(t, p))
	if e := openNow(t, p); len(e.Exchanges) != 0 {
		t.Fatalf("connected, nothing sent: %+v", e.Exchanges)
	}

	flow := event.Flow{
		NetnsInode: l.clientInode, Role: event.RoleClient, PID: os.Getpid(), Comm: ownComm(t),
		Local: netip.AddrPortFrom(netip.MustParseAddr(fam.local), portOf(t, client.fd)),
		Peer:  netip.AddrPortFrom(netip.MustParseAddr(fam.peer), labPort),
	}
	const (
		small = 321
		large = 131_072
	)
	var want struct {
		request, reply uint64
		stall          time.Duration
	}
	var began, sent time.Time // around the last send
	var ended time.Time
	send := func(n int) {
		began = time.Now()
		client.send(n)
		sent = time.Now()
		want.request, want.reply, want.stall = uint64(n), 0, 0
	}
	// check compares what the next send made of the exchange before it.
	check := func(e event.Exchange, open bool) {
		t.Helper()
		if e.Flow.Socket == 0 {
			t.Error("socket has no identity")
		}
		flow.Socket = e.Flow.Socket
		if d := diff(flow, e.Flow); d != "" {
			t.Error("flow:", d)
		}
		if e.RequestBytes != want.request || e.ReplyBytes != want.reply {
			t.Errorf("bytes %d/%d, want %d/%d", e.RequestBytes, e.ReplyBytes, want.request, want.reply)
		}
		if e.Open != open || e.Leg != "" {
			t.Errorf("open %t, leg %q", e.Open, e.Leg)
		}
		// The wall-clock mapping is measured to microseconds.
		const slack = time.Millisecond
		if at := time.Unix(0, e.SendNS); at.Before(began.Add(-slack)) || at.After(sent.Add(slack)) {
			t.Errorf("sent at %v, want between %v and %v", at, began, sent)
		}
		if e.FirstByte <= 0 || e.Duration < e.FirstByte || e.Duration > ended.Sub(began) {
			t.Errorf("first byte %v, duration %v, want at most %v", e.FirstByte, e.Duration, ended.Sub(began))
		}
		if e.Ack <= 0 || e.Ack > e.Duration {
			t.Errorf("ACK %v of %v", e.Ack, e.Duration)
		}
		if e.Stall < want.stall || e.Stall > e.Duration-e.FirstByte {
			t.Errorf("stall %v, want at least %v and at most %v", e.Stall, want.stall, e.Duration-e.FirstByte)
		}
		if e.OutOfOrder != 0 {
			t.Errorf("%d segments out of order on a path without loss", e.OutOfOrder)
		}
		if e.RTT <= 0 || e.MinRTT <= 0 || e.MinRTT > 2*e.RTT+time.Millisecond {
			t.Errorf("RTT %v, minimum %v", e.RTT, e.MinRTT)
		}
	}
	reply := func(n int) {
		carry(t, server, client, n)
		ended = time.Now()
		want.reply += uint64(n)
	}

	// 1: a reply of many segments.
	send(small)
	server.receive(small)
	reply(large)
	none(t, drain(t, p)) // it ends with the next send
	open := one(t, openNow(t, p))
	check(open, true)
	before := want
	client.send(large / 2) // may block half way: no times
	e := func() event.Exchange { want = before; return one(t, drain(t, p)) }()
	check(e, false)
	if e.SendNS != open.SendNS || e.Flow.Socket != open.Flow.Socket {
		t.Errorf("the end says sent at %d, the look %d: nobody can tell they are one", e.SendNS, open.SendNS)
	}

	// 2: two sends before the reply: the last one counts, the bytes of both.
	server.receive(large / 2)
	send(small)
	server.receive(small)
	want.request += large / 2
	reply(2048)
	before = want
	client.send(7)
	want = before
	check(one(t, drain(t, p)), false)

	// 3: a reply with a pause.
	server.receive(7)
	send(small)
	server.receive(small)
	want.request += 7
	reply(4096)
	paused := time.Now()
	eventually(t, "20 ms to pass", func() bool { return time.Since(paused) > 20*time.Millisecond })
	want.stall = time.Since(paused)
	reply(4096)
	before = want
	hungFrom := time.Now()
	client.send(small)
	want = before
	check(one(t, drain(t, p)), false)

	// 4: no answer: it ages while it hangs.
	hung := one(t, openNow(t, p))
	if hung.ReplyBytes != 0 || hung.FirstByte != 0 || !hung.Open || hung.RequestBytes != small {
		t.Errorf("hung exchange: %+v", hung)
	}
	if hung.Duration <= 0 || hung.Duration > time.Since(hungFrom) {
		t.Errorf("hangs for %v, want at most %v", hung.Duration, time.Since(hungFrom))
	}
	later := one(t, openNow(t, p))
	if later.Duration <= hung.Duration || later.SendNS != hung.SendNS || later.Flow != hung.Flow {
		t.Errorf("later look %+v does not continue %+v", later, hung)
	}

	// 5: the connection ends: so does the exchange, the span and the entry.
	client.close()
	events := drain(t, p)
	last := one(t, events)
	if last.Open || last.ReplyBytes != 0 || last.Duration < later.Duration || last.SendNS != hung.SendNS {
		t.Errorf("never answered: %+v, last look %+v", last, later)
	}
	server.close()
	eventually(t, "the connection's life span", func() bool {
		events.Connections = append(events.Connections, drain(t, p).Connections...)
		return len(events.Connections) > 0
	})
	c := events.Connections[0]
	if d := diff(flow, c.Flow); d != "" {
		t.Error("connection:", d)
	}
	if !c.Established || c.StartNS > open.SendNS || c.EndNS < last.SendNS || len(events.Connections) != 1 {
		t.Errorf("connections: %+v", events.Connections)
	}
	if n, err := p.Sockets(); n != 0 || err != nil {
		t.Errorf("%d sockets are left in the table, error %v", n, err)
	}
	if lost := p.Lost(); lost != 0 {
		t.Errorf("%d events lost: %+v", lost, p.Losses())
	}
}

// TestOwner: the process's name, not that of the thread which sends.
func TestOwner(t *testing.T) {
	l := newLab(t)
	p := load(t, l.options(""))
	client, server := l.dial(t, families[0], labPort)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the renamed thread ends here
		// The leader's thread would rename the process: that is the other case.
		if unix.Gettid() != os.Getpid() {
			name := []byte("not-the-process\x00")
			_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
		}
		done <- client.write(10)
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	server.receive(10)
	owner := func(want string) {
		t.Helper()
		if e := one(t, openNow(t, p)); e.Flow.PID != os.Getpid() || e.Flow.Comm != want {
			t.Errorf("owner %d %q, want %d %q", e.Flow.PID, e.Flow.Comm, os.Getpid(), want)
		}
	}
	before := ownComm(t)
	owner(before)

	// Servers rename themselves while they run.
	rename := func(name string) {
		if err := os.WriteFile("/proc/self/comm", []byte(name), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { rename(before) })
	rename("VLLM::Worker")
	for range 64 {
		client.send(1)
	}
	owner("VLLM::Worker")
}
