package ebpf

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWrap runs exchanges across the end of both sequence number spaces. The
// numbers are set by TCP_REPAIR, with which a connection is made without a
// handshake.
func TestWrap(t *testing.T) {
	l := newLab(t)
	forEachHook(t, func(t *testing.T, hook string) {
		p := load(t, l.options(hook))
		const (
			toServer = math.MaxUint32 - 500  // wraps inside the first request
			toClient = math.MaxUint32 - 5000 // wraps inside the first reply
		)
		client := repaired(t, clientNetns, "10.99.0.1", 40_000, "10.99.0.2", labPort, toServer, toClient)
		server := repaired(t, serverNetns, "10.99.0.2", labPort, "10.99.0.1", 40_000, toClient, toServer)
		for _, e := range []*end{client, server} {
			if err := unix.SetsockoptInt(e.fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 0); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			carry(t, client, server, 1000)
			carry(t, server, client, 20_000)
		}
		client.send(1)
		e := drain(t, p)
		if len(e.Exchanges) != 2 {
			t.Fatalf("%d exchanges, want 2: %+v", len(e.Exchanges), e.Exchanges)
		}
		for _, e := range e.Exchanges {
			if e.RequestBytes != 1000 || e.ReplyBytes != 20_000 || e.OutOfOrder != 0 || e.Ack <= 0 || e.Ack > e.Duration || e.Duration < e.FirstByte {
				t.Errorf("exchange %+v", e)
			}
		}
	})
}

// repaired makes an established socket out of nothing.
func repaired(t *testing.T, netns, local string, localPort int, peer string, peerPort int, send, receive uint32) *end {
	t.Helper()
	const receiveQueue, sendQueue = 1, 2 // include/uapi/linux/tcp.h
	e := &end{t: t}
	within(t, netns, func() (err error) {
		if e.fd, err = newSocket(unix.AF_INET); err != nil {
			return err
		}
		for _, option := range []struct{ name, value int }{
			{unix.TCP_NODELAY, 1},
			{unix.TCP_REPAIR, 1},
			{unix.TCP_REPAIR_QUEUE, sendQueue}, {unix.TCP_QUEUE_SEQ, int(int32(send))},
			{unix.TCP_REPAIR_QUEUE, receiveQueue}, {unix.TCP_QUEUE_SEQ, int(int32(receive))},
		} {
			if err := unix.SetsockoptInt(e.fd, unix.IPPROTO_TCP, option.name, option.value); err != nil {
				return err
			}
		}
		if err := unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return err
		}
		if err := unix.Bind(e.fd, sockaddr(unix.AF_INET, local, localPort)); err != nil {
			return err
		}
		if err := unix.Connect(e.fd, sockaddr(unix.AF_INET, peer, peerPort)); err != nil {
			return err
		}
		return agree(e.fd, receive)
	})
	t.Cleanup(e.reset)
	return e
}

// agree sets what a handshake would have agreed on: segment size and windows.
func agree(fd int, receive uint32) error {
	const maxSegment, scale, window = 2, 3, 60_000 // TCPOPT_MSS, TCPOPT_WINDOW
	words := func(values ...uint32) (b []byte) {
		for _, v := range values {
			b = binary.NativeEndian.AppendUint32(b, v)
		}
		return b
	}
	// Without a scale the window field would mean 1/128 of it.
	// struct tcp_repair_opt; struct tcp_repair_window: snd_wl1, snd_wnd,
	// max_window, rcv_wnd, rcv_wup (include/uapi/linux/tcp.h).
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR_OPTIONS, string(words(maxSegment, 1460, scale, 7|7<<16)))
	if err != nil {
		return err
	}
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR_WINDOW, string(words(receive, window, window, window, receive)))
}

// TestQuietSegments: what the kernels send on their own account is no part of
// an exchange. The reply has come, then the server's kernel probes, then the
// next send ends the exchange: it must end at its last byte.
func TestQuietSegments(t *testing.T) {
	l := newLab(t)
	p := load(t, l.options(""))

	t.Run("keep-alive", func(t *testing.T) {
		client, server := l.dial(t, families[0], labPort)
		client.send(100)
		server.receive(100)
		server.send(200)
		client.receive(200)
		replied := one(t, openNow(t, p))

		before := counter(t, serverNetns, "TcpExt", "TCPKeepAlive")
		for _, option := range []struct{ name, value int }{{unix.TCP_KEEPIDLE, 1}, {unix.TCP_KEEPINTVL, 1}} {
			if err := unix.SetsockoptInt(server.fd, unix.IPPROTO_TCP, option.name, option.value); err != nil {
				t.Fatal(err)
			}
		}
		if err := unix.SetsockoptInt(server.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a keep-alive probe", func() bool {
			return counter(t, serverNetns, "TcpExt", "TCPKeepAlive") > before
		})
		client.send(1)
		e := one(t, drain(t, p))
		if e.Duration != replied.Duration || e.ReplyBytes != 200 || e.Stall != replied.Stall || e.SendNS != replied.SendNS {
			t.Errorf("before the probes %+v, after them %+v", replied, e)
		}
		client.reset()
		drain(t, p)
	})

	t.Run("zero window", func(t *testing.T) {
		l.clientBuffer = 8192
		client, server := l.dial(t, families[0], labPort)
		client.send(100)
		server.receive(100)
		before := counter(t, serverNetns, "TcpExt", "TCPWinProbe")
		const reply = 300_000 // more than the client's buffer and window
		done := make(chan error, 1)
		began := time.Now()
		go func() { done <- server.write(reply) }()
		eventually(t, "two window probes", func() bool {
			return counter(t, serverNetns, "TcpExt", "TCPWinProbe") >= before+2
		})
		held := one(t, openNow(t, p))
		if held.ReplyBytes == 0 || held.ReplyBytes >= reply {
			t.Fatalf("%d bytes came into a closed window", held.ReplyBytes)
		}
		// Another probe moves nothing.
		probes := counter(t, serverNetns, "TcpExt", "TCPWinProbe")
		eventually(t, "one more window probe", func() bool {
			return counter(t, serverNetns, "TcpExt", "TCPWinProbe") > probes
		})
		if again := one(t, openNow(t, p)); again.Duration != held.Duration || again.ReplyBytes != held.ReplyBytes {
			t.Errorf("a window probe moved the exchange: %+v to %+v", held, again)
		}
		client.receive(reply)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		client.send(1)
		e := one(t, drain(t, p))
		if e.ReplyBytes != reply || e.Duration <= held.Duration || e.Stall <= 0 || e.Stall > took || e.OutOfOrder != 0 {
			t.Errorf("exchange %+v", e)
		}
	})
}

// TestPingPong: with both ends running freely every exchange is seen once and
// whole, also where the reply overtakes a hook that runs after the send.
func TestPingPong(t *testing.T) {
	const turns = 3000
	l := newLab(t)
	forEachHook(t, func(t *testing.T, hook string) {
		p := load(t, l.options(hook))
		client, server := l.dial(t, families[0], labPort)
		turn(client, server) // the first exchange is under way
		done := make(chan error, 1)
		go func() {
			for range turns {
				if err := server.read(100); err != nil {
					done <- err
					return
				}
				if err := server.write(300); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		var events Events
		for i := range turns {
			client.send(100)
			client.receive(300)
			if i%100 == 0 {
				if err := p.Drain(&events); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := p.Drain(&events); err != nil {
			t.Fatal(err)
		}
		if p.Lost() != 0 {
			t.Fatalf("lost %+v", p.Losses())
		}
		// One exchange of turn() and all but the last, which is still open.
		if len(events.Exchanges) != turns {
			t.Errorf("%d exchanges of %d", len(events.Exchanges), turns)
		}
		var sent int64
		for i, e := range events.Exchanges {
			request := uint64(100)
			if i == 1 {
				request++ // the byte with which turn() ended
			}
			if e.RequestBytes != request || e.ReplyBytes != map[bool]uint64{true: 200, false: 300}[i == 0] {
				t.Errorf("exchange %d: %d/%d bytes", i, e.RequestBytes, e.ReplyBytes)
			}
			if e.SendNS < sent || e.Duration <= 0 || e.Ack <= 0 || e.Ack > e.Duration || e.FirstByte <= 0 {
				t.Errorf("exchange %d: %+v", i, e)
			}
			sent = e.SendNS
		}
	})
}

// TestReplyDuringSend: a reply that comes while one large send still blocks
// belongs to that send, also for a hook that runs when the send returns.
func TestReplyDuringSend(t *testing.T) {
	l := newLab(t)
	forEachHook(t, func(t *testing.T, hook string) {
		p := load(t, l.options(hook))
		client, server := l.dial(t, families[0], labPort)
		client.send(100)
		server.receive(100)
		server.send(200)
		client.receive(200)

		const request = 32 << 20 // more than both buffers hold
		done := make(chan error, 1)
		go func() { done <- client.write(request) }()
		server.receive(100_000)
		server.send(50)
		client.receive(50)
		var events Events
		if err := p.Drain(&events); err != nil {
			t.Fatal(err)
		}
		if len(events.Exchanges) == 0 || events.Exchanges[0].RequestBytes != 100 || events.Exchanges[0].ReplyBytes != 200 {
			t.Fatalf("before the large send: %+v", events.Exchanges)
		}
		// A hook that sees every chunk may have ended the next one already.
		var during uint64
		for _, e := range append(events.Exchanges[1:len(events.Exchanges):len(events.Exchanges)], openNow(t, p).Exchanges...) {
			during += e.ReplyBytes
		}
		if during != 50 {
			t.Errorf("%d bytes during the large send, want 50", during)
		}

		server.receive(request - 100_000)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		server.send(10)
		client.receive(10)
		client.send(1)
		if err := p.Drain(&events); err != nil {
			t.Fatal(err)
		}
		var sent, replied uint64
		for _, e := range events.Exchanges {
			sent += e.RequestBytes
			replied += e.ReplyBytes
		}
		if sent != 100+request || replied != 200+50+10 {
			t.Errorf("%d and %d bytes in all, want %d and 260: %+v", sent, replied, 100+request, events.Exchanges)
		}
	})
}
