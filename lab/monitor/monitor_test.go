package monitor

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab"
	"grayfail/lab/trial"
)

// TestAlertArrives: an open episode that a scrape shows goes through the real
// Prometheus, with the project's rules, and the real Alertmanager to the inbox.
func TestAlertArrives(t *testing.T) {
	testkit.RequireRoot(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := lab.Start(ctx, lab.Options{Instance: "alert", Engine: lab.EngineStandin})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	metrics, err := c.Coordinator.Listen(trial.ExporterAddr)
	if err != nil {
		t.Fatal(err)
	}
	exporter := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		labels := `source="main",model="lab-random",phase="decode"`
		fmt.Fprintf(w, "grayfail_build_info 1\ngrayfail_episode_active{%s} 1\ngrayfail_episode_cause{%s,cause=\"loss\",leg=\"rpc-b\"} 1\n", labels, labels)
	})}
	go func() { _ = exporter.Serve(metrics) }()
	defer exporter.Close()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Start(ctx, c, filepath.Join(root, "alerts", "grayfail.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	a, ok := m.Inbox.Wait(ctx, "GrayfailPathNamed")
	if !ok {
		t.Fatal("nothing was delivered")
	}
	if a.Labels["leg"] != lab.LegB || a.Labels["cause"] != "loss" || !strings.Contains(a.Annotations["summary"], lab.LegB) {
		t.Errorf("delivered: %+v", a)
	}
	series, err := m.Query(ctx, "grayfail_episode_active == 1")
	if err != nil || len(series) != 1 || series[0].Metric["job"] != Job {
		t.Errorf("query: %v, %+v", err, series)
	}
	if _, err := m.Query(ctx, "sum("); err == nil {
		t.Error("a broken expression was accepted")
	}
}
