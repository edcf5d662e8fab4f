package alerts_test

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab"
	"grayfail/lab/monitor"
	"grayfail/lab/trial"
)

// TestFaultFiresAndResolves: packets of one worker's replies are lost, and the
// alert that names the leg, with cause, seconds and runbook, comes out of the
// real Prometheus and Alertmanager at a webhook; the loss ends, and the same
// alert arrives resolved.
//
// The engine is the lab's stand-in, so that nothing but the fault makes a
// request slow. The rules are the real ones, their times divided by hurry.
func TestFaultFiresAndResolves(t *testing.T) {
	l := startCluster(t, "e2e")
	exporter, err := trial.StartExporter(l.ctx, l.cluster, trial.ExporterOptions{Binary: exporterBinary(t)})
	if err != nil {
		t.Fatal(err)
	}
	l.monitor(t, exporter)
	for range 12 {
		l.request(t)
	}

	loss, err := l.cluster.NewLoss(lab.LegB, lab.Replies, 8)
	if err == nil {
		err = l.cluster.Inject(l.ctx, loss)
	}
	if err != nil {
		t.Fatal(err)
	}
	broken := time.Now()
	firing := l.requestsUntil(t, "GrayfailPathNamed is firing", func(a monitor.Alert) bool {
		return a.Status == "firing" && a.Labels["alertname"] == "GrayfailPathNamed" && a.Labels["leg"] == lab.LegB &&
			strings.Contains(a.Annotations["description"], "Slow requests lost ")
	})
	evidence, err := l.cluster.Eject(loss)
	if err != nil {
		t.Fatal(err)
	}
	mended := time.Now()
	for label, want := range map[string]string{"cause": "loss", "severity": "critical", "job": monitor.Job, "source": "main"} {
		if firing.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, firing.Labels[label], want)
		}
	}
	for annotation, want := range map[string]string{
		"summary":     "is slow because of leg rpc-b: loss",
		"description": "It goes to 10.77.2.2:50052 over to-rpc-b. Next step: find the drops between both hosts",
		"runbook":     "alerts/runbooks/GrayfailPathNamed.md",
	} {
		if !strings.Contains(firing.Annotations[annotation], want) {
			t.Errorf("%s is %q, want %q in it", annotation, firing.Annotations[annotation], want)
		}
	}

	resolved := l.requestsUntil(t, "the same alert is resolved", func(a monitor.Alert) bool {
		return a.Status == "resolved" && maps.Equal(a.Labels, firing.Labels) && a.Received.After(mended)
	})
	if !resolved.StartsAt.Equal(firing.StartsAt) {
		t.Errorf("resolved is an alert that began at %v, not the one of %v", resolved.StartsAt, firing.StartsAt)
	}
	for _, a := range l.inbox.Firing() {
		if a.Labels["alertname"] == "GrayfailPathNamed" && a.Labels["leg"] != lab.LegB {
			t.Errorf("an innocent leg is named: %v", a.Labels)
		}
	}
	t.Logf("%s: firing at the webhook %v after the fault began, resolved %v after it ended (rules %d times as fast as life)",
		evidence, span(broken, firing.Received), span(mended, resolved.Received), hurry)
	logAlerts(t, firing, resolved)
}

// live is a cluster with Prometheus and Alertmanager.
type live struct {
	ctx     context.Context
	cluster *lab.Cluster
	inbox   *monitor.Inbox
	proxy   string
	// prometheus answers queries.
	prometheus *monitor.Monitor
}

func startCluster(t *testing.T, instance string) *live {
	t.Helper()
	testkit.RequireRoot(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	c, err := lab.Start(ctx, lab.Options{Instance: instance, Engine: lab.EngineStandin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &live{ctx: ctx, cluster: c}
}

func exporterBinary(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "grayfail_exporter")
	testkit.Run(t, "go", "build", "-o", binary, "grayfail/cmd/grayfail_exporter")
	return binary
}

// monitor starts Prometheus and Alertmanager, with the rules run faster.
// others are exporters to scrape beside the coordinator's.
func (l *live) monitor(t *testing.T, coordinator *trial.Exporter, others ...string) {
	t.Helper()
	m, err := monitor.Start(l.ctx, l.cluster, fasterRules(t), others...)
	if err != nil {
		t.Fatal(err)
	}
	l.inbox, l.proxy, l.prometheus = m.Inbox, coordinator.ProxyURL(), m
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if t.Failed() {
			t.Logf("the exporter said at last:\n%s", coordinator.Tail(30))
		}
	})
}

func (l *live) request(t *testing.T) {
	t.Helper()
	a := l.cluster.Request(l.ctx, lab.RequestOptions{URL: l.proxy})
	if a.Err != nil || a.Status != 200 {
		t.Fatalf("request: status %d, %v", a.Status, a.Err)
	}
}

// requestsUntil sends requests until an alert has arrived that matches.
func (l *live) requestsUntil(t *testing.T, what string, match func(monitor.Alert) bool) monitor.Alert {
	t.Helper()
	for l.ctx.Err() == nil {
		l.request(t)
		if a, ok := l.inbox.Find(match); ok {
			return a
		}
	}
	t.Fatalf("it did not happen in time that %s; firing: %+v", what, l.inbox.Firing())
	return monitor.Alert{}
}

func logAlerts(t *testing.T, alerts ...monitor.Alert) {
	t.Helper()
	var text strings.Builder
	for _, a := range alerts {
		a.Write(&text)
	}
	t.Logf("as delivered:\n%s", &text)
}
