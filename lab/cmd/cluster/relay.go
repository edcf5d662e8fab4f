package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"grayfail/lab"
)

// control lets a campaign's commands turn the relays:
//
//	POST /delay?leg=rpc-b&direction=replies&delay=50ms
//	POST /clear?leg=rpc-b&direction=replies
//	GET  /acted   packets impaired since the last of them
type control struct {
	cluster *lab.Cluster
	mu      sync.Mutex
	now     *lab.Impair
}

func serveRelay(c *lab.Cluster, addr string) (*http.Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	k := &control{cluster: c}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /delay", k.delay)
	mux.HandleFunc("POST /clear", k.clear)
	mux.HandleFunc("GET /acted", k.acted)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }() // until it is closed
	return s, nil
}

func (k *control) delay(w http.ResponseWriter, r *http.Request) {
	d, err := time.ParseDuration(r.FormValue("delay"))
	if err != nil {
		http.Error(w, "delay: "+err.Error(), http.StatusBadRequest)
		return
	}
	f, err := k.cluster.NewImpair(r.FormValue("leg"), lab.Direction(r.FormValue("direction")), lab.Impairment{Delay: d})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := errors.Join(k.stop(), k.cluster.Inject(r.Context(), f)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	k.now = f
}

func (k *control) clear(w http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.stop(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (k *control) stop() error {
	if k.now == nil {
		return nil
	}
	f := k.now
	k.now = nil
	return f.Clear()
}

func (k *control) acted(w http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == nil {
		http.Error(w, "nothing is impaired", http.StatusConflict)
		return
	}
	e, err := k.now.Acted()
	if err != nil && !errors.Is(err, lab.ErrDidNotAct) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, e.Count)
}
