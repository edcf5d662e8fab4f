package board

import (
	"net/http"
	"sync"
	"sync/atomic"
)

// maxReaders bounds the pages that are kept current at once. One more is told
// so, and stands still.
const maxReaders = 32

// Board serves the page and keeps open ones current. Safe for concurrent use.
type Board struct {
	page    func() *Page
	readers atomic.Int32
	closed  chan struct{}
	close   sync.Once

	mu      sync.Mutex
	changed chan struct{} // closed by the next Changed
	now     state
	stale   bool // now is of before the last change
}

// New returns a Board of what page gives. page is called for each view of the
// page, and once for each change while somebody looks at it.
func New(page func() *Page) *Board {
	return &Board{page: page, closed: make(chan struct{}), changed: make(chan struct{}), stale: true}
}

// Changed says that page would give something else now. It never waits for a
// reader.
func (b *Board) Changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stale = true
	close(b.changed)
	b.changed = make(chan struct{})
}

// Close ends the streams to all readers, so that a server can shut down.
func (b *Board) Close() { b.close.Do(func() { close(b.closed) }) }

// Register puts the page, its style, its script and its stream into mux.
// guard wraps each of them.
func (b *Board) Register(mux *http.ServeMux, guard func(http.HandlerFunc) http.Handler) {
	mux.Handle("/{$}", guard(b.servePage))
	mux.Handle("/board/style.css", guard(asset("assets/style.css", "text/css; charset=utf-8")))
	mux.Handle("/board/live.js", guard(asset("assets/live.js", "text/javascript; charset=utf-8")))
	mux.Handle("/board/events", guard(b.serveEvents))
}

// policy lets a browser load what this server has, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

func (b *Board) servePage(w http.ResponseWriter, _ *http.Request) {
	html, err := Render(b.page())
	if err != nil {
		http.Error(w, "page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := headers(w, "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	_, _ = w.Write(html) // the client has gone; nobody is left to tell
}

func asset(name, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		body, err := assets.ReadFile(name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		headers(w, contentType)
		_, _ = w.Write(body)
	}
}

func headers(w http.ResponseWriter, contentType string) http.Header {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	return h
}
