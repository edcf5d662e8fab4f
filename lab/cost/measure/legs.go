package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"grayfail/lab"
)

// fleet is n connections to as many peers, each a leg: 127.1.0.1 and on, at the
// port that llama.cpp's workers use.
type fleet struct {
	clients   []net.Conn
	servers   []net.Conn
	exchanges atomic.Uint64
	work      sync.WaitGroup
}

func connect(ctx context.Context, ns lab.Namespace, n int) (_ *fleet, err error) {
	f := &fleet{}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	for i := range n {
		addr := fmt.Sprintf("127.1.%d.%d:%d", i/250, 1+i%250, lab.RPCPort)
		l, err := ns.Listen(addr)
		if err != nil {
			return f, err
		}
		client, err := ns.Dial(ctx, "tcp", addr)
		if err == nil {
			f.clients = append(f.clients, client)
			var server net.Conn
			if server, err = l.Accept(); err == nil {
				f.servers = append(f.servers, server)
			}
		}
		if err = errors.Join(err, l.Close()); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Sizes of one exchange, those of llama.cpp's last worker but for the logits.
const (
	requestBytes = 321
	replyBytes   = 2048
)

// run lets every leg do exchanges, perSecond each at most, until ctx ends.
func (f *fleet) run(ctx context.Context, perSecond int) {
	for _, s := range f.servers {
		f.work.Go(func() { serve(s) })
	}
	for _, c := range f.clients {
		f.work.Go(func() { f.ask(ctx, c, perSecond) })
	}
}

func serve(c net.Conn) {
	request, reply := make([]byte, requestBytes), make([]byte, replyBytes)
	for {
		if _, err := io.ReadFull(c, request); err != nil {
			return
		}
		if _, err := c.Write(reply); err != nil {
			return
		}
	}
}

// ask does in every hundredth of a second what that has room for.
func (f *fleet) ask(ctx context.Context, c net.Conn, perSecond int) {
	request, reply := make([]byte, requestBytes), make([]byte, replyBytes)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		for range max(1, perSecond/100) {
			if _, err := c.Write(request); err != nil {
				return
			}
			if _, err := io.ReadFull(c, reply); err != nil {
				return
			}
			f.exchanges.Add(1)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// close ends the connections, and waits for who used them.
func (f *fleet) close() {
	for _, c := range f.clients {
		_ = c.Close()
	}
	for _, c := range f.servers {
		_ = c.Close()
	}
	f.work.Wait()
}
