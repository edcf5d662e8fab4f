package export

import (
	"net/http"
	"strings"
	"sync/atomic"

	"grayfail/event"
	"grayfail/export/board"
)

// rememberedRows bounds what /api/v1/requests remembers.
const rememberedRows = 2048

// API answers what was measured and judged as JSON, and the page at /. Safe
// for concurrent use.
type API struct {
	rows     ring
	snapshot atomic.Pointer[event.Snapshot]
	board    *board.Board
}

// NewAPI returns an API that knows nothing yet: every list is empty. reason
// gives a leg's reason in words, for the page; nil leaves it as it is.
func NewAPI(reason func(*event.Leg) string) *API {
	if reason == nil {
		reason = func(l *event.Leg) string { return l.Reason }
	}
	a := &API{rows: ring{max: rememberedRows}}
	a.snapshot.Store(&event.Snapshot{})
	a.board = board.New(func() *board.Page {
		return boardPage(a.snapshot.Load(), a.rows.newest(rememberedRows, func(*event.Row) bool { return true }), reason)
	})
	return a
}

// Close ends the streams that keep open pages current: a server that shuts
// down would wait for them.
func (a *API) Close() { a.board.Close() }

// AddRow remembers a row; beyond the bound the oldest is dropped.
func (a *API) AddRow(r event.Row) { a.rows.add(r) }

// Publish makes s what is answered from now on; see Metrics.Publish.
func (a *API) Publish(s *event.Snapshot) {
	if s != nil {
		a.snapshot.Store(s)
		a.board.Changed()
	}
}

// Register puts the page and the API into mux. Every answer of the API is
// JSON, errors too: {"error": "..."}. POST /api/v1/requests belongs to the push
// handler: its pattern names the method, so mux prefers it to ours.
func (a *API) Register(mux *http.ServeMux) {
	a.board.Register(mux, func(get http.HandlerFunc) http.Handler { return readOnly(get) })
	mux.Handle("/api/v1/legs", readOnly(a.legs))
	mux.Handle("/api/v1/requests", readOnly(a.requests, http.MethodPost))
	mux.Handle("/api/v1/episodes", readOnly(a.episodes))
	mux.Handle("/api/v1/baselines", readOnly(a.baselines))
}

// readOnly lets GET and HEAD through; elsewhere names methods that another
// handler of the same path answers.
func readOnly(get http.HandlerFunc, elsewhere ...string) http.Handler {
	allow := strings.Join(append([]string{http.MethodGet, http.MethodHead}, elsewhere...), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			get(w, r)
			return
		}
		w.Header().Set("Allow", allow)
		writeError(w, http.StatusMethodNotAllowed, "method "+label(r.Method)+" is not allowed here: allowed are "+allow)
	})
}

func (a *API) legs(w http.ResponseWriter, r *http.Request) {
	if _, err := query(r); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeBody(w, http.StatusOK, LegsJSON(a.snapshot.Load().Legs))
}

func (a *API) requests(w http.ResponseWriter, r *http.Request) {
	filter, err := requestFilter(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"requests": a.rows.newest(filter.limit, filter.admits)})
}

func (a *API) episodes(w http.ResponseWriter, r *http.Request) {
	if _, err := query(r); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"episodes": episodesOf(a.snapshot.Load())})
}

func (a *API) baselines(w http.ResponseWriter, r *http.Request) {
	if _, err := query(r); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"baselines": baselinesOf(a.snapshot.Load())})
}

// episodesOf copies, newest first: the snapshot is not ours to change.
func episodesOf(s *event.Snapshot) []event.Episode {
	out := make([]event.Episode, 0, len(s.Episodes))
	for _, e := range s.Episodes {
		if e.RequestIDs == nil {
			e.RequestIDs = []string{}
		}
		out = append(out, e)
	}
	newestFirst(out)
	return out
}

func baselinesOf(s *event.Snapshot) []event.Baseline {
	out := make([]event.Baseline, 0, len(s.Baselines))
	for _, b := range s.Baselines {
		b.Rate, b.Anchor, b.LogSigma = orZero(b.Rate), orZero(b.Anchor), orZero(b.LogSigma)
		out = append(out, b)
	}
	return out
}
