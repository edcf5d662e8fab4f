package dashboards_test

import (
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab"
	"grayfail/lab/monitor"
	"grayfail/lab/trial"
)

// live is Debian's Prometheus with the alert rules. It scrapes the exporter of a
// real cluster's coordinator, one of its workers, and the fallback.
type live struct {
	cluster  *lab.Cluster
	exporter *trial.Exporter
	monitor  *monitor.Monitor
	// instances are the scrape targets of each state.
	instances [states]string
}

// prompt is long enough for a verdict on prefill.
var prompt = strings.Repeat("the capital of France is ", 20)

func startLive(t *testing.T) *live {
	t.Helper()
	testkit.RequireRoot(t)
	binary := filepath.Join(t.TempDir(), "grayfail_exporter")
	testkit.Run(t, "go", "build", "-o", binary, "grayfail/cmd/grayfail_exporter")

	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	engine, err := lab.EngineFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Start(ctx, lab.Options{Instance: "dash", Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	exporter, err := trial.StartExporter(ctx, c, trial.ExporterOptions{Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	worker, err := trial.StartWorkerExporter(ctx, c, lab.LegB, trial.ExporterOptions{Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	serveFallback(t, c)
	rules, err := filepath.Abs("../alerts/grayfail.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := monitor.Start(ctx, c, rules, worker.Addr, fallbackAddr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if t.Failed() {
			t.Logf("the exporter said at last:\n%s", exporter.Tail(30))
		}
	})
	here := regexp.QuoteMeta(trial.ExporterAddr) + "|" + regexp.QuoteMeta(worker.Addr)
	return &live{c, exporter, m, [states]string{here, here, regexp.QuoteMeta(fallbackAddr)}}
}

func serveFallback(t *testing.T, c *lab.Cluster) {
	t.Helper()
	f, err := newFallback()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := c.Coordinator.Listen(fallbackAddr)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }() // ends with Close
	t.Cleanup(func() { _ = server.Close(); <-ended })
}
