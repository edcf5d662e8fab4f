package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Alert as Alertmanager delivers it (webhook version 4).
type Alert struct {
	Status      string            `json:"status"` // firing or resolved
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	Received    time.Time         `json:"-"`
}

// Inbox is the receiver at the end of the alert's way.
type Inbox struct {
	server *http.Server
	mu     sync.Mutex
	alerts []Alert
	more   chan struct{} // closed and renewed at each delivery
}

func newInbox(l net.Listener) *Inbox {
	in := &Inbox{more: make(chan struct{})}
	in.server = &http.Server{Handler: http.HandlerFunc(in.deliver), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = in.server.Serve(l) }() // ends with close
	return in
}

func (in *Inbox) close() error { return in.server.Close() }

func (in *Inbox) deliver(w http.ResponseWriter, r *http.Request) {
	var message struct {
		Alerts []Alert `json:"alerts"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, a := range message.Alerts {
		a.Received = time.Now()
		in.alerts = append(in.alerts, a)
	}
	close(in.more)
	in.more = make(chan struct{})
}

// Wait returns the first firing alert of a name, or false at ctx's end.
func (in *Inbox) Wait(ctx context.Context, name string) (Alert, bool) {
	firing := func(a Alert) bool { return a.Status == "firing" && a.Labels["alertname"] == name }
	for {
		a, ok, more := in.find(firing)
		if ok {
			return a, true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return Alert{}, false
		}
	}
}

// Find returns the first alert received that matches. It does not wait.
func (in *Inbox) Find(match func(Alert) bool) (Alert, bool) {
	a, ok, _ := in.find(match)
	return a, ok
}

// find also gives what is closed at the next delivery.
func (in *Inbox) find(match func(Alert) bool) (a Alert, ok bool, more <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if i := slices.IndexFunc(in.alerts, match); i >= 0 {
		return in.alerts[i], true, in.more
	}
	return Alert{}, false, in.more
}

// Firing lists every firing alert received, in the order of arrival.
func (in *Inbox) Firing() []Alert {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(in.alerts), func(a Alert) bool { return a.Status != "firing" })
}

// Write prints the alert for people.
func (a Alert) Write(w io.Writer) {
	fmt.Fprintf(w, "  status: %s, received %s\n", a.Status, a.Received.Format(time.TimeOnly))
	for _, part := range []struct {
		name   string
		values map[string]string
	}{{"labels", a.Labels}, {"annotations", a.Annotations}} {
		fmt.Fprintf(w, "  %s:\n", part.name)
		for _, k := range slices.Sorted(maps.Keys(part.values)) {
			fmt.Fprintf(w, "    %s: %s\n", k, part.values[k])
		}
	}
}
