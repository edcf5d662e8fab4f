package export

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"

	"grayfail/event"
)

const (
	second  = int64(time.Second)
	startNS = 1_800_000_000 * second
)

// newMetrics registers in a pedantic registry: it checks every scrape against
// the descriptions.
func newMetrics(t testing.TB, o Options) (*Metrics, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	o.Registerer = reg
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m, reg
}

// samples gathers everything as name{label="value",...} -> value, in the text
// format's spelling; histograms as their _count and _sum. The number of samples
// is part of every assertion made with it.
func samples(t testing.TB, g prometheus.Gatherer, names ...string) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatalf("gather: %v", err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), namespace)
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		for _, metric := range f.GetMetric() {
			labels := labelText(metric)
			switch {
			case metric.Histogram != nil:
				out[name+"_count"+labels] = float64(metric.Histogram.GetSampleCount())
				out[name+"_sum"+labels] = metric.Histogram.GetSampleSum()
			case metric.Counter != nil:
				out[name+labels] = metric.Counter.GetValue()
			default:
				out[name+labels] = metric.Gauge.GetValue()
			}
		}
	}
	return out
}

func labelText(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.GetLabel() {
		pairs = append(pairs, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

func family(t testing.TB, g prometheus.Gatherer, name string) *dto.MetricFamily {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatalf("gather: %v", err)
	}
	for _, f := range families {
		if f.GetName() == namespace+name {
			return f
		}
	}
	t.Fatalf("no family %s", namespace+name)
	return nil
}

// wantSamples asserts that the named metrics have exactly these samples.
func wantSamples(t testing.TB, g prometheus.Gatherer, names []string, want map[string]float64) {
	t.Helper()
	got := samples(t, g, names...)
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[k]; !ok {
			t.Errorf("missing %s (want %v)", k, want[k])
		} else if diff := v - want[k]; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s = %v, want %v", k, v, want[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			t.Errorf("unexpected %s = %v", k, got[k])
		}
	}
}

// scrape is what Prometheus gets in the text format.
func scrape(t testing.TB, g prometheus.Gatherer) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(g, zerolog.Nop()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func ptr(v float64) *float64 { return &v }

// fullSnapshot has something of everything that is sampled.
func fullSnapshot() *event.Snapshot {
	return &event.Snapshot{
		TimeNS: startNS,
		Legs: []event.Leg{
			{
				Name: "rpc-b", Role: event.RoleClient, Local: netip.MustParseAddr("10.77.2.1"),
				Peer: netip.MustParseAddrPort("10.77.2.2:50052"), Device: "veth-b",
				Transport: event.TransportTCP, Reason: "", Expected: "auto", Process: "llama-server", PID: 4711,
				Connections: 1, BytesAcked: 164_321, BytesReceived: 128_009, OutOfOrder: 11,
				RTT: 85 * time.Microsecond, MinRTT: 41 * time.Microsecond, FirstSeenNS: startNS - 60*second,
			},
			{
				Name: "rpc-r", Role: event.RoleClient, Netns: "pod", Local: netip.MustParseAddr("fd00::1"),
				Peer: netip.MustParseAddrPort("[fd00::2]:50052"), Device: "enp1s0f1", RDMADevice: "mlx5_1", RDMAPort: 2,
				Transport: event.TransportFallback, Reason: "port_not_probed", Expected: "rdma",
				Connections: 2, BytesAcked: 5000, BytesReceived: 6000, RTT: time.Millisecond, MinRTT: time.Millisecond,
				QueuePairs: rdmaReading().QueuePairs[1:2],
			},
			{
				Name: "from 10.77.9.9", Role: event.RoleServer, Local: netip.MustParseAddr("10.77.2.1"),
				Peer: netip.AddrPortFrom(netip.MustParseAddr("10.77.9.9"), 0), Transport: event.TransportUnknown,
			},
		},
		RDMA: rdmaReading(),
		Qdiscs: []event.Qdisc{
			{Device: "eth0", Kind: "mq", Handle: "8001:", Parent: "root", Bytes: 1 << 40, Packets: 1<<32 + 5, Drops: 7, Requeues: 3, Overlimits: 2, BacklogBytes: 1514, QueuePackets: 1},
			{Netns: "pod", Device: "eth0", Kind: "clsact", Handle: "ffff:", Parent: "clsact", Drops: 9},
		},
		Baselines: []event.Baseline{
			{Source: "main", Model: "qwen", Phase: event.PhaseDecode, Concurrency: "1", Rate: 46.8, Anchor: 47.1, Samples: 30, LogSigma: 0.11, State: event.BaselineFrozen, Adopted: 1, Requests: 60},
			{Source: "main", Model: "qwen", Phase: event.PhaseDecode, Concurrency: "2", Samples: 4, LogSigma: 0.2, State: event.BaselineWarming, Adopted: 2, Requests: 4},
		},
		Episodes: []event.Episode{
			{StartNS: startNS - 10*second, Source: "main", Model: "qwen", Phase: event.PhaseDecode, Cause: event.CauseLoss, Leg: "rpc-b", Slow: 3, Requests: 4, RequestIDs: []string{"a", "b", "c"}},
			{StartNS: startNS - 100*second, EndNS: startNS - 50*second, Source: "main", Model: "qwen", Phase: event.PhaseDecode, Cause: event.CauseLocal, Slow: 3, Requests: 9},
		},
		Correlations: []event.Correlation{
			{Model: "qwen", Leg: "rpc-b", Evidence: "drop_fraction", N: 30, Rho: -0.564, PValue: 0.0012, FamilyPValue: 0.004},
		},
		Statuses: []event.Status{
			{Collector: "qdisc", Availability: event.Up, Duration: 3 * time.Millisecond},
			{Collector: "rdma", Availability: event.NotTried},
			{Collector: "tcp_events", Availability: event.Up, Duration: time.Millisecond, Lost: 12},
			{Collector: "tcp_sockets", Availability: event.Degraded, Duration: 2 * time.Millisecond, Errors: 1, Problems: []event.Problem{{Reason: "no_permission", Detail: "owner by inode: needs CAP_SYS_PTRACE"}}},
		},
		Detector: event.DetectorStats{
			Ignored: []event.Count{{Name: "duplicate_request", N: 3}}, Freed: []event.Count{{Name: "legs", N: 1}},
			Entries: []event.Count{{Name: "strata", N: 7}}, ClockSteps: 2,
		},
		Intake:        []event.Intake{{Source: "push", Results: []event.Count{{Name: "accepted", N: 4}, {Name: "duplicate", N: 1}}}},
		InFlight:      []event.InFlight{{Source: "main", Model: "qwen", Requests: 2}},
		HostAddresses: []netip.Addr{netip.MustParseAddr("10.77.2.1"), netip.MustParseAddr("fd00::1")},
		ConfigReload:  event.ConfigReload{Successful: true, TimeNS: startNS - 3600*second},
	}
}

// rdmaReading is a card with a port in use, one that is down, and another card
// whose queue pairs could not be listed.
func rdmaReading() *event.RDMA {
	return &event.RDMA{
		TimeNS: startNS, QueuePairsNS: startNS,
		Ports: []event.RDMAPort{
			{Device: "mlx5_1", Port: 1, Netdev: "enp1s0f0", LinkLayer: "Ethernet", Protocol: "roce", State: "ACTIVE", Active: true, RateBytesPerSecond: 12.5e9},
			{Device: "mlx5_1", Port: 2, Netdev: "enp1s0f1", LinkLayer: "Ethernet", Protocol: "roce", State: "DOWN"},
			{Device: "mlx5_2", Port: 1, State: ""},
		},
		QueuePairs: []event.QueuePair{
			{Device: "mlx5_1", Port: 1, LQPN: 1, Type: "GSI", State: "RTS", KernelName: "ib_core"},
			{Device: "mlx5_1", Port: 1, LQPN: 131, RQPN: 77, Type: "RC", State: "RTS", PID: 4711},
			{Device: "mlx5_1", Port: 1, LQPN: 132, RQPN: 78, Type: "RC", State: "RTS", PID: 4711},
			{Device: "mlx5_1", LQPN: 133, Type: "RC", State: "RESET", PID: 4711},
			{Device: "mlx5_2", Port: 1, LQPN: 9, Type: "RC", State: "RTS", PID: 4711},
		},
		Unlisted: []string{"mlx5_2"},
		Counters: []event.RDMACounter{
			{Device: "mlx5_1", Port: 1, Event: "out_of_sequence", Value: 12},
			{Device: "mlx5_1", Port: 2, Event: "out_of_sequence"},
		},
	}
}

// slowRow is a row like those of the field trial.
func slowRow() event.Row {
	return event.Row{
		ID: "req-17", Source: "main", Model: "qwen", Phase: event.PhaseDecode, Outcome: event.OutcomeOK,
		Rate: ptr(19.9), Baseline: ptr(121.5), R: ptr(19.9 / 121.5), Verdict: event.VerdictSlow,
		ExcessMS: 1389.6, LegsMS: map[string]float64{"rpc-a": 4.3, "rpc-b": 1383.5}, LocalMS: 1.8,
		Cause: event.CauseLoss, Detail: "11 out-of-order segments", Leg: "rpc-b",
		StartNS: startNS - 2*second, EndNS: startNS,
	}
}

func okRow() event.Row {
	return event.Row{
		ID: "req-18", Source: "main", Model: "qwen", Phase: event.PhaseDecode, Outcome: event.OutcomeOK,
		Rate: ptr(120), Baseline: ptr(121.5), R: ptr(120 / 121.5), Verdict: event.VerdictOK,
		StartNS: startNS, EndNS: startNS + second,
	}
}

// feedEverything makes every metric of the contract have a series.
func feedEverything(m *Metrics) {
	m.Request(event.Request{
		ID: "req-17", Source: "main", Model: "qwen", Outcome: event.OutcomeOK,
		StartNS: startNS - 3*second, FirstTokenNS: startNS - 2*second, EndNS: startNS,
	})
	m.HTTPStages(event.HTTPStages{Upstream: "127.0.0.1:8080", Durations: map[event.HTTPStage]time.Duration{
		event.HTTPStageConnect: 150 * time.Microsecond, event.HTTPStageRead: 2 * time.Second,
	}})
	m.Row(slowRow())
	m.Row(event.Row{Source: "main", Model: "qwen", Phase: event.PhasePrefill, Verdict: event.VerdictUnknown, Rate: ptr(900)})
	m.EpisodeOpened(event.Episode{Source: "main", Model: "qwen", Phase: event.PhaseDecode, Cause: event.CauseLoss, Leg: "rpc-b"})
	m.Exchange(&event.Exchange{Leg: "rpc-b", Duration: 212 * time.Millisecond, Stall: 205 * time.Millisecond, ReplyBytes: 2048})
	m.Retransmit(&event.Retransmit{Leg: "rpc-b", Kind: event.RetransmitTLP})
	m.Connection(&event.Connection{Leg: "rpc-b", StartNS: startNS, EndNS: startNS + second/10, Established: true})
	m.Publish(fullSnapshot())
}
