package testkit

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// HalfHeader holds that a server, with its own time for a header made short,
// closes a connection on which a header is begun and never ended, and serves
// others all the while. It serves until the test ends.
func HalfHeader(t testing.TB, s *http.Server) {
	t.Helper()
	if s.ReadHeaderTimeout <= 0 || s.ReadHeaderTimeout > 30*time.Second {
		t.Errorf("a header may take %s", s.ReadHeaderTimeout)
	}
	s.ReadHeaderTimeout = 50 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})

	slow, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "POST / HTTP/1.1\r\nHost: test\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	if err := slow.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// A server that waits on makes this end by the deadline.
	if answer, err := io.ReadAll(slow); err != nil || len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 408") {
		t.Errorf("half a header: %q, %v; want the connection closed", answer, err)
	}
	whole, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if _, err := io.WriteString(whole, "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(whole); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 ") {
		t.Errorf("a whole header: %q, %v", answer, err)
	}
}
