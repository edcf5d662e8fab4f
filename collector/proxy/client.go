package proxy

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

// client is the way back to the client. It adds nothing to an answer, and
// knows whether the client takes it.
type client struct {
	http.ResponseWriter
	now     func() time.Time
	unsized bool // the answer's length is not known
	lost    atomic.Bool
	// blocked is nanoseconds waited for the client. ReverseProxy flushes the
	// header once more from a goroutine of its own.
	blocked atomic.Int64
}

// like keeps net/http from adding what the upstream did not send.
func (c *client) like(r *http.Response) {
	for _, name := range []string{"Date", "Content-Type"} {
		if _, ok := r.Header[name]; !ok {
			c.Header()[name] = nil
		}
	}
	c.unsized = r.ContentLength < 0
}

// WriteHeader sends the header of an answer of unknown length at once: the
// server would else work out a length for a short one.
func (c *client) WriteHeader(status int) {
	c.ResponseWriter.WriteHeader(status)
	if c.unsized && status >= 200 {
		_ = c.FlushError() // what cannot be written shows at the next Write
	}
}

func (c *client) Write(p []byte) (int, error) {
	start := c.now()
	n, err := c.ResponseWriter.Write(p)
	c.took(start, err)
	return n, err
}

// FlushError is found by http.ResponseController.
func (c *client) FlushError() error {
	start := c.now()
	err := http.NewResponseController(c.ResponseWriter).Flush()
	c.took(start, err)
	return err
}

// Unwrap lets http.ResponseController find the rest (Hijack).
func (c *client) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *client) took(start time.Time, err error) {
	c.blocked.Add(int64(c.now().Sub(start)))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		c.lost.Store(true)
	}
}

// left says who gave a request up before the upstream did.
type left uint8

const (
	leftNot     left = iota
	leftClient       // the client, or we in its place at shutdown
	leftTimeout      // our time limit
)

func (c *client) gone(ctx context.Context) left {
	switch {
	case errors.Is(context.Cause(ctx), ErrTimeout):
		return leftTimeout
	case ctx.Err() != nil || c.lost.Load():
		return leftClient
	}
	return leftNot
}
