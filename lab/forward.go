package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// Forward lets the host reach a TCP address inside the coordinator's namespace
// by a port of its own loopback, until Close: no interface and no address
// joins the two. It prefers the given host address; if that is taken, another
// port is used. It returns the one it got.
func (c *Cluster) Forward(host, inside string) (string, error) {
	l, err := net.Listen("tcp", host)
	if errors.Is(err, syscall.EADDRINUSE) {
		name, _, _ := net.SplitHostPort(host)
		l, err = net.Listen("tcp", net.JoinHostPort(name, "0"))
	}
	if err != nil {
		return "", fmt.Errorf("forward to %s: %w", inside, err)
	}
	c.mu.Lock()
	c.forwards = append(c.forwards, l)
	c.mu.Unlock()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			go c.splice(conn, inside)
		}
	}()
	return l.Addr().String(), nil
}

func (c *Cluster) splice(outer net.Conn, inside string) {
	defer outer.Close()
	inner, err := c.Coordinator.Dial(context.Background(), "tcp", inside)
	if err != nil {
		return // the caller sees its connection closed, as if nobody listened
	}
	defer inner.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{inner, outer}, {outer, inner}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
}
