package alerts_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab"
	"grayfail/lab/monitor"
	"grayfail/lab/trial"
)

// TestSeveralHosts: three exporters, each in a network namespace of its own and
// seeing nothing else, and one real Prometheus. What the coordinator alone
// cannot tell of a leg is settled by what the peer's exporter counts: its own
// queue dropped, the network did, or nothing was lost and its process stalled.
//
// The engine is the lab's stand-in, and the rules run faster, as in
// TestFaultFiresAndResolves.
func TestSeveralHosts(t *testing.T) {
	l := startCluster(t, "hosts")
	binary := exporterBinary(t)
	coordinator, err := trial.StartExporter(l.ctx, l.cluster, trial.ExporterOptions{Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	var workers []string
	for _, leg := range []string{lab.LegA, lab.LegB} {
		worker, err := trial.StartWorkerExporter(l.ctx, l.cluster, leg, trial.ExporterOptions{Binary: binary})
		if err != nil {
			t.Fatal(err)
		}
		workers = append(workers, worker.Addr)
	}
	l.monitor(t, coordinator, workers...)
	link, err := l.cluster.Link(lab.LegB)
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		l.request(t)
	}
	t.Run("legs lead to hosts", func(t *testing.T) {
		for leg, host := range map[string]string{lab.LegA: workers[0], lab.LegB: workers[1]} {
			testkit.Eventually(t, time.Minute, func() error {
				got, err := l.prometheus.Query(l.ctx, fmt.Sprintf(`leg:grayfail_leg_host:info{leg=%q}`, leg))
				if err == nil && (len(got) != 1 || got[0].Metric["host"] != host || got[0].Metric["instance"] != trial.ExporterAddr) {
					err = fmt.Errorf("%s: %v", leg, got)
				}
				return err
			})
		}
	})

	queue, err := l.cluster.NewRateLimit(lab.LegB, lab.Replies, 40_000_000)
	if err != nil {
		t.Fatal(err)
	}
	queue.QueueBytes = 16_000 // smaller than a reply
	loss, err := l.cluster.NewLoss(lab.LegB, lab.Replies, 8)
	if err != nil {
		t.Fatal(err)
	}
	stall, err := l.cluster.NewPause(lab.LegB, 20, 250*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		fault lab.Injector
		alert string
		label map[string]string
		says  string
	}{
		{"its own queue drops", queue, "GrayfailPeerDrops",
			map[string]string{"direction": "egress", "device": link.WorkerDevice}, "drops packets on their way out of " + link.WorkerDevice},
		{"lost on the way", loss, "GrayfailPeerRetransmits",
			map[string]string{"direction": "from_peer", "device": link.WorkerDevice}, "are lost on the way"},
		{"its process stalls", stall, "GrayfailPeerStalled", map[string]string{"device": "", "direction": ""}, "the process on " + workers[1] + " stalls"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.quiet(t)
			if err := l.cluster.Inject(l.ctx, tt.fault); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			alert := l.requestsUntil(t, tt.alert+" is firing", func(a monitor.Alert) bool {
				return a.Status == "firing" && a.Labels["alertname"] == tt.alert && a.Received.After(began)
			})
			acted, err := l.cluster.Eject(tt.fault)
			if err != nil {
				t.Error(err)
			}
			if alert.Labels["host"] != workers[1] || alert.Labels["leg"] != lab.LegB || !strings.Contains(alert.Annotations["summary"], tt.says) {
				t.Errorf("%v %v", alert.Labels, alert.Annotations)
			}
			for name, want := range tt.label {
				if alert.Labels[name] != want {
					t.Errorf("%s is %q, want %q", name, alert.Labels[name], want)
				}
			}
			for _, other := range l.inbox.Firing() {
				name := other.Labels["alertname"]
				if strings.HasPrefix(name, "GrayfailPeer") && name != tt.alert && other.Received.After(began) {
					t.Errorf("%s fires too: %v", name, other.Annotations)
				}
			}
			t.Logf("%s; the coordinator alone: %s", acted, l.coordinatorSays(t, coordinator))
			logAlerts(t, alert)
		})
	}
}

// quiet sends requests until no alert about a peer is left, and the windows of
// the rules hold nothing of what was before.
func (l *live) quiet(t *testing.T) {
	t.Helper()
	for l.ctx.Err() == nil {
		l.request(t)
		left, err := l.prometheus.Query(l.ctx, `ALERTS{alertname=~"GrayfailPeer.*|GrayfailPathNamed"} or (host_device:grayfail_qdisc_egress_drops:increase5m > 0) or (leg:grayfail_tcp_retransmits_for_loss:increase5m > 0)`)
		if err == nil && len(left) == 0 {
			return
		}
	}
	t.Fatal("the fault before does not end")
}

// coordinatorSays counts what the slow requests of the last episode were
// blamed on, with the detail of the newest.
func (l *live) coordinatorSays(t *testing.T, e *trial.Exporter) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
	defer cancel()
	series, err := l.prometheus.Query(ctx, `source_model_leg_cause:grayfail_episode_path:named`)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, s := range series {
		said = append(said, s.Metric["leg"]+" "+s.Metric["cause"])
	}
	body, err := l.cluster.Fetch(ctx, e.URL("/api/v1/requests?verdict=slow&limit=1"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(said, ", ") + "; newest slow request: " + string(body)
}
