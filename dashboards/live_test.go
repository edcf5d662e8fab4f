package dashboards_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab"
	"grayfail/lab/monitor"
	"grayfail/lab/trial"
)

// live is Debian's Prometheus with the alert rules, scraping a real exporter
// beside a cluster. All of it is in the coordinator's network namespace.
type live struct {
	cluster  *lab.Cluster
	exporter *trial.Exporter
	monitor  *monitor.Monitor
}

// TestEveryQueryReturnsData loses packets on one leg and looks at every panel;
// it also wants the alert that names the leg, and no other leg named. The
// engine is the lab's stand-in, so that its time per token is known.
func TestEveryQueryReturnsData(t *testing.T) {
	l := startLive(t)
	for range 15 {
		l.request(t)
	}
	loss, err := l.cluster.NewLoss(lab.LegB, lab.Replies, 5)
	if err == nil {
		err = l.cluster.Inject(t.Context(), loss)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.requestsUntil(t, `grayfail_episode_cause{cause="loss", leg="rpc-b"} == 1`)

	named := fmt.Sprintf(`ALERTS{alertname="GrayfailPathNamed", alertstate="firing", leg=%q, cause="loss"}`, lab.LegB)
	l.eventually(t, named)
	l.eventually(t, `ALERTS{alertname="GrayfailSlowRequests", alertstate="firing"}`)
	if wrong := l.query(t, fmt.Sprintf(`ALERTS{alertname="GrayfailPathNamed", leg!=%q}`, lab.LegB)); len(wrong) != 0 {
		t.Errorf("an innocent leg is named: %v", wrong)
	}
	queries(t, func(where string, _ panel, q target) {
		t.Run(where, func(t *testing.T) { l.eventually(t, resolve(q.Expr, "15s", "10m")) })
	})
	for _, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				t.Run(d.file+": variable "+v.Name, func(t *testing.T) { l.eventually(t, offered(v)) })
			}
		}
	}
}

// offered counts what a variable offers: label_values(SERIES, LABEL).
func offered(v variable) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")")
	cut := strings.LastIndex(inner, ", ")
	return fmt.Sprintf("count by (%s) (%s)", inner[cut+2:], resolve(inner[:cut], "", ""))
}

func startLive(t *testing.T) *live {
	t.Helper()
	testkit.RequireRoot(t)
	binary := filepath.Join(t.TempDir(), "grayfail_exporter")
	testkit.Run(t, "go", "build", "-o", binary, "grayfail/cmd/grayfail_exporter")

	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	c, err := lab.Start(ctx, lab.Options{Instance: "dash", Engine: lab.EngineStandin})
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
	rules, err := filepath.Abs("../alerts/grayfail.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := monitor.Start(ctx, c, rules)
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
	return &live{c, exporter, m}
}

func (l *live) request(t *testing.T) {
	t.Helper()
	a := l.cluster.Request(t.Context(), lab.RequestOptions{URL: l.exporter.ProxyURL()})
	if a.Err != nil || a.Status != 200 {
		t.Fatalf("request: status %d, %v", a.Status, a.Err)
	}
}

// requestsUntil sends requests, a hundred at most, until Prometheus has data
// for expr.
func (l *live) requestsUntil(t *testing.T, expr string) {
	t.Helper()
	for range 100 {
		l.request(t)
		if len(l.query(t, expr)) > 0 {
			return
		}
	}
	t.Fatalf("after 100 requests no data for %s; episodes: %v, verdicts: %v", expr,
		l.query(t, "grayfail_episode_cause"), l.query(t, "grayfail_request_verdicts_total"))
}

// eventually waits until Prometheus answers expr with at least one number.
func (l *live) eventually(t *testing.T, expr string) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, func() error {
		for _, s := range l.query(t, expr) {
			if s.Value[1] != "NaN" {
				return nil
			}
		}
		return fmt.Errorf("no data for %s", expr)
	})
}

func (l *live) query(t *testing.T, expr string) []monitor.Series {
	t.Helper()
	series, err := l.monitor.Query(t.Context(), expr)
	if err != nil {
		t.Fatal(err)
	}
	return series
}
