package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// question is the body of a request on its way to the upstream.
type question struct {
	io.ReadCloser
	client *client
	call   *call // nil: nothing is measured
	whole  atomic.Bool
}

func (q *question) Read(p []byte) (int, error) {
	if q.whole.Load() {
		// The transport looks for more once it has everything. net/http may
		// have closed the body by then (it does when the answer begins), and
		// would say so: the transport would drop the upstream's connection.
		return 0, io.EOF
	}
	n, err := q.read(p)
	if n > 0 && q.call != nil {
		q.call.guard(func() { q.call.observer.RequestBody(p[:n]) })
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		q.whole.Store(true)
		if q.call != nil {
			q.call.stages.given()
		}
	case !errors.Is(err, http.ErrBodyReadAfterClose):
		q.client.lost.Store(true) // it stopped sending: not the upstream's fault
	}
	return n, err
}

// read says how long the client let us wait: that is not the upstream's time.
func (q *question) read(p []byte) (int, error) {
	if q.call == nil || q.call.stages == nil {
		return q.ReadCloser.Read(p)
	}
	start := q.client.now()
	n, err := q.ReadCloser.Read(p)
	q.call.stages.ask(q.client.now().Sub(start))
	return n, err
}

// giveUp ends a read that waits for the client: the transport does not return
// before that.
func (q *question) giveUp() {
	if !q.whole.Load() {
		// A connection that has no deadlines has no such read either.
		_ = http.NewResponseController(q.client.ResponseWriter).SetReadDeadline(time.Unix(1, 0))
	}
}

// overtaken prepares for an answer that comes before the request has passed.
// net/http would wait for the rest of the request first, and take it from the
// transport. After such an answer the client's connection is closed (net/http
// cannot go on with it), which HTTP/1 says in a header of the connection.
func (q *question) overtaken(protocol int) {
	if q == nil || protocol != 1 || q.whole.Load() {
		return
	}
	if http.NewResponseController(q.client.ResponseWriter).EnableFullDuplex() == nil {
		q.client.Header().Set("Connection", "close")
	}
}
