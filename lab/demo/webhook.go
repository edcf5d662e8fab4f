package demo

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

// alert as Alertmanager delivers it (webhook version 4).
type alert struct {
	Status      string            `json:"status"` // firing or resolved
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	received    time.Time
}

// inbox is the receiver at the end of the alert's way.
type inbox struct {
	server *http.Server
	mu     sync.Mutex
	alerts []alert
	more   chan struct{} // closed and renewed at each delivery
}

func newInbox(l net.Listener) *inbox {
	in := &inbox{more: make(chan struct{})}
	in.server = &http.Server{Handler: http.HandlerFunc(in.deliver), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = in.server.Serve(l) }() // ends with close
	return in
}

func (in *inbox) close() error { return in.server.Close() }

func (in *inbox) deliver(w http.ResponseWriter, r *http.Request) {
	var message struct {
		Alerts []alert `json:"alerts"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, a := range message.Alerts {
		a.received = time.Now()
		in.alerts = append(in.alerts, a)
	}
	close(in.more)
	in.more = make(chan struct{})
}

// wait returns the first firing alert of a name, or false at ctx's end.
func (in *inbox) wait(ctx context.Context, name string) (alert, bool) {
	for {
		in.mu.Lock()
		i := slices.IndexFunc(in.alerts, func(a alert) bool { return a.Status == "firing" && a.Labels["alertname"] == name })
		if i >= 0 {
			defer in.mu.Unlock()
			return in.alerts[i], true
		}
		more := in.more
		in.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return alert{}, false
		}
	}
}

// firing lists every firing alert received, in the order of arrival.
func (in *inbox) firing() []alert {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(in.alerts), func(a alert) bool { return a.Status != "firing" })
}

func (a alert) write(w io.Writer) {
	fmt.Fprintf(w, "  status: %s, received %s\n", a.Status, a.received.Format(time.TimeOnly))
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
