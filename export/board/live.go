package board

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// writeTime is how long a reader may take for one change. One that does not
// read holds up nobody but itself, and not for ever.
const writeTime = 10 * time.Second

// message is one section that has changed, or the title.
type message struct {
	ID    string `json:"id,omitempty"`
	HTML  string `json:"html,omitempty"`
	Title string `json:"title,omitempty"`
}

// serveEvents streams the sections that differ from those sent before, as
// server-sent events (HTML standard, section 9.2) of type "section".
func (b *Board) serveEvents(w http.ResponseWriter, r *http.Request) {
	defer b.readers.Add(-1)
	if b.readers.Add(1) > maxReaders {
		http.Error(w, fmt.Sprintf("%d pages are kept current already", maxReaders), http.StatusServiceUnavailable)
		return
	}
	if r.Method == http.MethodHead {
		headers(w, "text/event-stream")
		return
	}
	out := http.NewResponseController(w)
	// The server's deadline for reading a request would end this one. What
	// cannot set deadlines has none.
	_ = out.SetReadDeadline(time.Time{})
	headers(w, "text/event-stream")
	var shown state
	for {
		now, changed, err := b.current()
		if err != nil {
			return // the page itself says why
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTime))
		for _, m := range shown.until(now) {
			body, err := json.Marshal(m)
			if err != nil {
				return
			}
			if _, err := fmt.Fprintf(w, "event: section\ndata: %s\n\n", body); err != nil {
				return
			}
		}
		shown = now
		if out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-b.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// state is what an open page shows.
type state struct {
	title    string
	sections map[string]string // by name; never written to once made
}

// until lists what must be told to a page that shows s to make it show now.
func (s state) until(now state) []message {
	var out []message
	if s.title != now.title {
		out = append(out, message{Title: now.title})
	}
	for _, id := range sections {
		if s.sections[id] != now.sections[id] {
			out = append(out, message{ID: id, HTML: now.sections[id]})
		}
	}
	return out
}

// current gives the state, rendered once for all readers, and a channel that
// the next change closes.
func (b *Board) current() (state, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stale {
		page := b.page()
		rendered, err := renderSections(page)
		if err != nil {
			return state{}, nil, err
		}
		b.now, b.stale = state{page.Title(), rendered}, false
	}
	return b.now, b.changed, nil
}
