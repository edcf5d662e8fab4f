package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"grayfail/export"
)

// webParts is what the HTTP surface shows or calls.
type webParts struct {
	log         zerolog.Logger
	registry    *prometheus.Registry
	api         *export.API
	push        http.Handler
	pushEnabled func() bool
	ready       func() bool
	reload      func() error
	adopt       func(source, model string) int
	pprof       bool
}

// newMux builds the contract's endpoints.
func newMux(p webParts) *http.ServeMux {
	mux := http.NewServeMux()
	p.api.Register(mux) // GET /, /api/v1/legs, requests, episodes, baselines
	mux.Handle("GET /metrics", export.Handler(p.registry, p.log))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "grayfail_exporter is healthy.")
	})
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if !p.ready() {
			http.Error(w, "not ready: a collector has not been tried yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "grayfail_exporter is ready.")
	})
	mux.HandleFunc("POST /-/reload", func(w http.ResponseWriter, _ *http.Request) {
		if err := p.reload(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "reloaded")
	})
	mux.Handle("POST /api/v1/requests", p.writing(p.push))
	mux.Handle("POST /api/v1/baselines/adopt", p.writing(http.HandlerFunc(p.serveAdopt)))
	if p.pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// writing guards the endpoints that change what the detector believes.
func (p webParts) writing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.pushEnabled() {
			http.Error(w, "writing is off: set requests.push.enabled: true in the configuration file", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// serveAdopt takes model and, optionally, source as query or form values.
func (p webParts) serveAdopt(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	model := r.FormValue("model")
	if model == "" {
		http.Error(w, `parameter "model" is needed`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"adopted": p.adopt(r.FormValue("source"), model)})
}
