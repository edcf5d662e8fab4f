package export

import (
	"net/http"
	"strings"
	"sync/atomic"

	"grayfail/event"
)

// APIOptions of an API.
type APIOptions struct {
	// Rows bounds how many rows /api/v1/requests remembers: 2048 where 0.
	Rows int
}

// API answers what was measured and judged as JSON, and the page at /. Safe
// for concurrent use.
type API struct {
	rows     ring
	snapshot atomic.Pointer[event.Snapshot]
}

// NewAPI returns an API that knows nothing yet: every list is empty.
func NewAPI(o APIOptions) *API {
	a := &API{rows: ring{max: orDefault(o.Rows, 2048)}}
	a.snapshot.Store(&event.Snapshot{})
	return a
}

// Row remembers a row; beyond the bound the oldest is dropped.
func (a *API) Row(r event.Row) { a.rows.add(r) }

// Publish makes s what is answered from now on; see Metrics.Publish.
func (a *API) Publish(s *event.Snapshot) {
	if s != nil {
		a.snapshot.Store(s)
	}
}

// Register puts the page and the API into mux. push answers POST
// /api/v1/requests; where it is nil that method is not allowed. Every answer of
// the API is JSON, errors too: {"error": "..."}.
func (a *API) Register(mux *http.ServeMux, push http.Handler) {
	mux.Handle("/{$}", readOnly(http.HandlerFunc(a.landing), nil))
	mux.Handle("/api/v1/legs", readOnly(http.HandlerFunc(a.legs), nil))
	mux.Handle("/api/v1/requests", readOnly(http.HandlerFunc(a.requests), push))
	mux.Handle("/api/v1/episodes", readOnly(http.HandlerFunc(a.episodes), nil))
	mux.Handle("/api/v1/baselines", readOnly(http.HandlerFunc(a.baselines), nil))
}

// readOnly lets GET and HEAD through, and POST where there is somebody for it.
func readOnly(get, post http.Handler) http.Handler {
	allowed := []string{http.MethodGet, http.MethodHead}
	if post != nil {
		allowed = append(allowed, http.MethodPost)
	}
	allow := strings.Join(allowed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet, r.Method == http.MethodHead:
			get.ServeHTTP(w, r)
		case r.Method == http.MethodPost && post != nil:
			post.ServeHTTP(w, r)
		default:
			w.Header().Set("Allow", allow)
			writeError(w, http.StatusMethodNotAllowed, "method "+label(r.Method)+" is not allowed here: allowed are "+allow)
		}
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
