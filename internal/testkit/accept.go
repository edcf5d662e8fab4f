package testkit

import (
	"net"
	"sync"
	"testing"
)

// Accept listens on loopback until the test ends and hands each connection to
// a goroutine of its own, which closes it when serve returns. It returns
// host:port, and waits for every serve at the end of the test.
func Accept(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}
