package board

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// rig is a Board whose page shows a text that the test sets.
type rig struct {
	*Board
	text  atomic.Pointer[string]
	drawn atomic.Int32
	url   string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{}
	r.Board = New(func() *Page {
		r.drawn.Add(1)
		return &Page{AsOf: "then", Head: []Headline{{Text: *r.text.Load()}}}
	})
	r.show("first")
	mux := http.NewServeMux()
	r.Register(mux, func(h http.HandlerFunc) http.Handler { return h })
	s := httptest.NewServer(mux)
	t.Cleanup(func() { r.Close(); s.Close() })
	r.url = s.URL + "/board/events"
	return r
}

func (r *rig) show(text string) {
	r.text.Store(&text)
	r.Changed()
}

// reader is one open page.
type reader struct {
	t    *testing.T
	resp *http.Response
	scan *bufio.Scanner
}

func (r *rig) open(t *testing.T) *reader {
	t.Helper()
	ctx := t.Context()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 1<<20)
	return &reader{t, resp, scan}
}

// next gives the next message; false at the end of the stream.
func (r *reader) next() (message, bool) {
	r.t.Helper()
	for r.scan.Scan() {
		if data, ok := strings.CutPrefix(r.scan.Text(), "data: "); ok {
			var m message
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				r.t.Fatal(err)
			}
			return m, true
		}
	}
	return message{}, false
}

// TestStream: all at first, then what has changed, and nothing else.
func TestStream(t *testing.T) {
	r := newRig(t)
	page := r.open(t)
	if page.resp.StatusCode != http.StatusOK || page.resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s", page.resp.Status, page.resp.Header.Get("Content-Type"))
	}
	if m, _ := page.next(); m.Title != "first - grayfail" {
		t.Errorf("first message %+v", m)
	}
	for _, id := range sections {
		if m, ok := page.next(); !ok || m.ID != id || m.HTML == "" {
			t.Errorf("message %+v, want section %s", m, id)
		}
	}
	r.Changed() // to the same: nothing to tell
	r.show("second")
	if m, _ := page.next(); m.Title != "second - grayfail" {
		t.Errorf("%+v", m)
	}
	if m, _ := page.next(); m.ID != "head" || !strings.Contains(m.HTML, "second") {
		t.Errorf("%+v", m)
	}
	r.Close()
	if m, ok := page.next(); ok {
		t.Errorf("%+v after the end", m)
	}
}

// TestNobodyLooks: nothing is drawn for nobody, and once for many.
func TestNobodyLooks(t *testing.T) {
	r := newRig(t)
	for range 100 {
		r.Changed()
	}
	if n := r.drawn.Load(); n != 0 {
		t.Errorf("drawn %d times for nobody", n)
	}
	for range 5 {
		r.open(t).next()
	}
	if n := r.drawn.Load(); n != 1 {
		t.Errorf("drawn %d times for five", n)
	}
}

// TestReadersAreBounded: one more than there is room for is told so at once,
// and one that leaves makes room.
func TestReadersAreBounded(t *testing.T) {
	r := newRig(t)
	var pages []*reader
	for range maxReaders {
		page := r.open(t)
		page.next()
		pages = append(pages, page)
	}
	if one := r.open(t); one.resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %s", one.resp.Status)
	}
	pages[0].resp.Body.Close()
	testkit.Eventually(t, time.Minute, func() error {
		if one := r.open(t); one.resp.StatusCode != http.StatusOK {
			return errors.New(one.resp.Status)
		}
		return nil
	})
}

// TestSilentReader: one that reads nothing holds up nobody else.
func TestSilentReader(t *testing.T) {
	r := newRig(t)
	r.open(t) // and never reads
	page := r.open(t)
	long := strings.Repeat("x", 100_000)
	for i := range 100 {
		r.show(long + string(rune('a'+i%26)))
	}
	r.show("last")
	for {
		m, ok := page.next()
		if !ok {
			t.Fatal("the stream has ended")
		}
		if m.Title == "last - grayfail" {
			return
		}
	}
}
