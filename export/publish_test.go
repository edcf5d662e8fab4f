package export

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"grayfail/event"
)

func TestFallbackTimeAddsUpBetweenSnapshots(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	const seconds = `leg_fallback_seconds_total{leg="rpc-r"}`
	for _, step := range []struct {
		at        float64
		transport event.Transport
		want      float64
		there     bool
		why       string
	}{
		{0, event.TransportUnknown, 0, false, "nothing is known yet"},
		{1, event.TransportRDMA, 0, true, ""},
		{2, event.TransportFallback, 0, true, "the interval before was not in fallback"},
		{3.5, event.TransportFallback, 1.5, true, ""},
		{4.5, event.TransportRDMA, 2.5, true, "the interval began in fallback"},
		{9, event.TransportRDMA, 2.5, true, ""},
		{10, event.TransportFallback, 2.5, true, ""},
		{5, event.TransportFallback, 2.5, true, "the clock was set back"},
		{6, event.TransportFallback, 3.5, true, ""},
		{7200, event.TransportFallback, 63.5, true, "the host slept: a minute at most"},
		{7201, event.TransportUnknown, 64.5, true, "unknown now, but the time was spent"},
	} {
		m.Publish(&event.Snapshot{
			TimeNS: startNS + int64(step.at*1e9),
			Legs:   []event.Leg{{Name: "rpc-r", Transport: step.transport, Reason: "memlock"}},
		})
		got, there := samples(t, reg)[seconds]
		if got != step.want || there != step.there {
			t.Errorf("at %v s: %v (there: %v), want %v (%v) %s", step.at, got, there, step.want, step.there, step.why)
		}
	}
}

func TestTimeOutOfTheSnapshotsIsNotFallbackTime(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	leg := event.Leg{Name: "rpc-r", Transport: event.TransportFallback}
	for i, legs := range [][]event.Leg{{leg}, nil, {leg}, {leg}} {
		m.Publish(&event.Snapshot{TimeNS: startNS + int64(i)*second, Legs: legs})
	}
	if v := samples(t, reg)[`leg_fallback_seconds_total{leg="rpc-r"}`]; v != 1 {
		t.Errorf("%v s, want 1: it was not there for two of the three intervals", v)
	}
}

func TestCorrelations(t *testing.T) {
	m, reg := newMetrics(t, Options{MaxLegs: 1})
	m.Row(okRow()) // makes the model known
	leg := event.Leg{Name: "rpc-b"}
	m.Publish(&event.Snapshot{TimeNS: startNS, Legs: []event.Leg{leg}, Correlations: []event.Correlation{
		{Model: "qwen", Leg: "rpc-b", Evidence: "retransmits", N: 30, Rho: -0.5, PValue: 0.01},
		{Model: "qwen", Leg: "rpc-b", Evidence: "drop_fraction", N: 3, Rho: math.NaN(), PValue: math.NaN()},
		{Model: "never judged", Leg: "rpc-b", Evidence: "retransmits", N: 30},
		{Model: "qwen", Leg: "no room", Evidence: "retransmits", N: 30},
	}})
	wantSamples(t, reg, []string{"path_rank_correlation", "path_rank_correlation_p_value", "path_rank_correlation_requests", "series_overflow_total"}, map[string]float64{
		`path_rank_correlation{evidence="retransmits",leg="rpc-b",model="qwen"}`:          -0.5,
		`path_rank_correlation_p_value{evidence="retransmits",leg="rpc-b",model="qwen"}`:  0.01,
		`path_rank_correlation_requests{evidence="retransmits",leg="rpc-b",model="qwen"}`: 30,
		`series_overflow_total`: 2,
	})
}

func TestFallbackOfALeg(t *testing.T) {
	for transport, want := range map[event.Transport]map[string]float64{
		event.TransportFallback: {`leg_fallback{leg="r",reason="memlock"}`: 1},
		event.TransportTCP:      {`leg_fallback{leg="r",reason=""}`: 0},
		event.TransportRDMA:     {`leg_fallback{leg="r",reason=""}`: 0},
		event.TransportDead:     {`leg_fallback{leg="r",reason=""}`: 0},
		event.TransportUnknown:  {},
		"":                      {},
		"carrier pigeon":        {},
	} {
		t.Run(string(transport), func(t *testing.T) {
			m, reg := newMetrics(t, Options{})
			m.Publish(&event.Snapshot{TimeNS: startNS, Legs: []event.Leg{{Name: "r", Transport: transport, Reason: "memlock"}}})
			wantSamples(t, reg, []string{"leg_fallback"}, want)
			var ones []string
			transports := samples(t, reg, "leg_transport")
			for name, v := range transports {
				if v == 1 {
					ones = append(ones, name)
				}
			}
			if len(transports) != len(event.Transports) || len(ones) != 1 {
				t.Errorf("%d transports, set are %v: want %d, one of them set", len(transports), ones, len(event.Transports))
			}
		})
	}
}

// TestExpectedRDMA: no port has the address, and RDMA is what the operator
// expects.
func TestExpectedRDMA(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	legs := []event.Leg{
		{Name: "r", Transport: event.TransportTCP, Reason: "no_gid", Expected: "rdma"},
		{Name: "idle", Transport: event.TransportIdle, Reason: "no_gid", Expected: "rdma"},
		{Name: "here", Transport: event.TransportTCP, Reason: "unacknowledged", Expected: "rdma"},
	}
	m.Publish(&event.Snapshot{TimeNS: startNS, Legs: legs})
	m.Publish(&event.Snapshot{TimeNS: startNS + 2e9, Legs: legs})
	m.Publish(&event.Snapshot{TimeNS: startNS + 2e9, Legs: append(legs, event.Leg{Name: "auto", Expected: "auto"})})
	wantSamples(t, reg, []string{"leg_expected"}, map[string]float64{
		`leg_expected{expected="rdma",leg="r"}`: 1, `leg_expected{expected="rdma",leg="idle"}`: 1, `leg_expected{expected="rdma",leg="here"}`: 1,
	})
	wantSamples(t, reg, []string{"leg_fallback", "leg_fallback_seconds_total"}, map[string]float64{
		`leg_fallback{leg="r",reason="no_gid"}`: 1, `leg_fallback{leg="idle",reason=""}`: 0, `leg_fallback{leg="here",reason=""}`: 0,
		`leg_fallback_seconds_total{leg="r"}`: 2, `leg_fallback_seconds_total{leg="idle"}`: 0, `leg_fallback_seconds_total{leg="here"}`: 0,
	})
}

func TestALegThatWasNeverReadHasNoBytes(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Publish(&event.Snapshot{TimeNS: startNS, Legs: []event.Leg{
		{Name: "unread", Connections: 1},
		{Name: "gone", GoneNS: startNS, RTT: time.Millisecond, MinRTT: time.Millisecond, BytesAcked: 5, OutOfOrder: 2},
		{Name: "quiet", RTT: time.Millisecond},
	}})
	wantSamples(t, reg, []string{"tcp_connections", "tcp_payload_bytes_total", "tcp_out_of_order_packets_total", "tcp_rtt_seconds", "tcp_min_rtt_seconds"}, map[string]float64{
		`tcp_connections{leg="unread"}`:                             1,
		`tcp_connections{leg="gone"}`:                               0,
		`tcp_connections{leg="quiet"}`:                              0,
		`tcp_payload_bytes_total{direction="sent",leg="gone"}`:      5,
		`tcp_payload_bytes_total{direction="received",leg="gone"}`:  0,
		`tcp_payload_bytes_total{direction="sent",leg="quiet"}`:     0,
		`tcp_payload_bytes_total{direction="received",leg="quiet"}`: 0,
		`tcp_out_of_order_packets_total{leg="gone"}`:                2,
		`tcp_out_of_order_packets_total{leg="quiet"}`:               0,
		`tcp_rtt_seconds{leg="quiet"}`:                              0.001,
	})
}

func TestWhatIsGoneDisappears(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	feedEverything(m)
	m.Publish(&event.Snapshot{TimeNS: startNS + second})
	for _, f := range []string{"leg_", "qdisc_", "host_info", "baseline_", "episode_cause", "path_rank", "collector_", "requests_in_flight", "tcp_rtt", "tcp_connections", "config_"} {
		for name := range samples(t, reg) {
			if strings.HasPrefix(name, f) {
				t.Errorf("%s is still there", name)
			}
		}
	}
	// A model that was judged stays known; its episode is over.
	wantSamples(t, reg, []string{"episode_active"}, map[string]float64{
		`episode_active{model="qwen",phase="decode",source="main"}`:  0,
		`episode_active{model="qwen",phase="prefill",source="main"}`: 0,
	})
	if v := samples(t, reg)[`tcp_exchange_seconds_count{leg="rpc-b"}`]; v != 1 {
		t.Errorf("one snapshot without the leg reset its exchanges to %v", v)
	}
}

func TestDuplicatesAreDroppedAndCounted(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	q := event.Qdisc{Device: "eth0", Kind: "mq", Handle: "1:", Parent: "root", Drops: 1}
	dirty := q
	dirty.Device, dirty.Drops = "eth\x01", 3
	dirtyTwin := q
	dirtyTwin.Device, dirtyTwin.Drops = "eth\x02", 4
	twin := q
	twin.Drops = 2
	a := netip.MustParseAddr("10.0.0.1")
	m.Publish(&event.Snapshot{
		TimeNS:        startNS,
		Qdiscs:        []event.Qdisc{q, twin, dirty, dirtyTwin},
		Legs:          []event.Leg{{Name: "rpc-b", Connections: 1}, {Name: "rpc-b", Connections: 7}},
		HostAddresses: []netip.Addr{a, a, netip.AddrFrom16(a.As16()), {}},
		Statuses:      []event.Status{{Collector: "qdisc", Availability: event.Up, Problems: []event.Problem{{Reason: "x"}, {Reason: "x"}}}},
	})
	wantSamples(t, reg, []string{"qdisc_drops_total", "tcp_connections", "host_info", "collector_problem_info", "series_overflow_total"}, map[string]float64{
		`qdisc_drops_total{device="eth0",handle="1:",kind="mq",netns="",parent="root"}`:                1,
		"qdisc_drops_total{device=\"eth\uFFFD\",handle=\"1:\",kind=\"mq\",netns=\"\",parent=\"root\"}": 3,
		`tcp_connections{leg="rpc-b"}`:                         1,
		`host_info{address="10.0.0.1"}`:                        1,
		`collector_problem_info{collector="qdisc",reason="x"}`: 1,
		`series_overflow_total`:                                7 + 7 + 1 + 2,
	})
	checkMetrics(t, scrape(t, reg))
}

func TestSnapshotSeriesAreBounded(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	s := &event.Snapshot{TimeNS: startNS, SeriesOverflow: 5}
	for i := range maxSeries + 10 {
		s.Qdiscs = append(s.Qdiscs, event.Qdisc{Device: fmt.Sprint("d", i)})
	}
	for i := range 300 {
		s.Legs = append(s.Legs, event.Leg{Name: fmt.Sprint("leg-", i)})
	}
	m.Publish(s)
	got := samples(t, reg, "qdisc_drops_total", "leg_info", "series_overflow_total")
	if want := maxSeries + 256 + 1; len(got) != want {
		t.Errorf("%d series, want %d", len(got), want)
	}
	if v := got["series_overflow_total"]; v != 10*7+44+5 {
		t.Errorf("overflow %v, want %d", v, 10*7+44+5)
	}
}

func TestCollectorStates(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Publish(&event.Snapshot{TimeNS: startNS, Statuses: []event.Status{
		{Collector: "a", Availability: event.NotTried, Problems: []event.Problem{{Reason: "waiting"}}},
		{Collector: "b", Availability: event.Up, Duration: time.Second, Lost: 3},
		{Collector: "c", Availability: event.Degraded, Problems: []event.Problem{{Reason: "no_btf"}, {Reason: "no_permission"}}},
		{Collector: "d", Availability: event.Unsupported, Problems: []event.Problem{{Reason: "not_supported"}}},
		{Collector: "e", Availability: event.Failed, Errors: 4},
	}})
	wantSamples(t, reg, []string{"collector_up", "collector_problem_info", "events_lost_total", "collector_errors_total"}, map[string]float64{
		`collector_up{collector="b"}`:                                  1,
		`collector_up{collector="c"}`:                                  1,
		`collector_up{collector="d"}`:                                  0,
		`collector_up{collector="e"}`:                                  0,
		`collector_problem_info{collector="a",reason="waiting"}`:       1,
		`collector_problem_info{collector="c",reason="no_btf"}`:        1,
		`collector_problem_info{collector="c",reason="no_permission"}`: 1,
		`collector_problem_info{collector="d",reason="not_supported"}`: 1,
		`events_lost_total{collector="b"}`:                             3,
		`events_lost_total{collector="c"}`:                             0,
		`events_lost_total{collector="d"}`:                             0,
		`events_lost_total{collector="e"}`:                             0,
		`collector_errors_total{collector="b"}`:                        0,
		`collector_errors_total{collector="c"}`:                        0,
		`collector_errors_total{collector="d"}`:                        0,
		`collector_errors_total{collector="e"}`:                        4,
	})
}

func TestReloadStates(t *testing.T) {
	for name, c := range map[string]struct {
		reload event.ConfigReload
		want   map[string]float64
	}{
		"never":              {event.ConfigReload{}, map[string]float64{}},
		"good":               {event.ConfigReload{Successful: true, TimeNS: startNS}, map[string]float64{"config_last_reload_successful": 1, "config_last_reload_success_timestamp_seconds": 1_800_000_000}},
		"bad, an older good": {event.ConfigReload{TimeNS: startNS}, map[string]float64{"config_last_reload_successful": 0, "config_last_reload_success_timestamp_seconds": 1_800_000_000}},
	} {
		t.Run(name, func(t *testing.T) {
			m, reg := newMetrics(t, Options{})
			m.Publish(&event.Snapshot{TimeNS: startNS, ConfigReload: c.reload})
			wantSamples(t, reg, []string{"config_last_reload_successful", "config_last_reload_success_timestamp_seconds"}, c.want)
		})
	}
}

func TestBaselinesShowTheBusiestStratum(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	s := fullSnapshot()
	m.Publish(s)
	const labels = `{model="qwen",phase="decode",source="main"}`
	want := map[string]float64{
		`baseline_tokens_per_second` + labels: 46.8, `baseline_anchor_tokens_per_second` + labels: 47.1,
		`baseline_samples` + labels: 30, `baseline_adopted_total` + labels: 3, // over all strata
	}
	names := []string{"baseline_tokens_per_second", "baseline_anchor_tokens_per_second", "baseline_samples", "baseline_adopted_total"}
	wantSamples(t, reg, names, want)

	// Another stratum becomes the busiest: warming, so it has no rate yet, and
	// the counter does not fall.
	busier := fullSnapshot()
	busier.Baselines[1].Requests = 1000
	m.Publish(busier)
	wantSamples(t, reg, append(names, "baseline_state"), map[string]float64{
		`baseline_samples` + labels: 4, `baseline_adopted_total` + labels: 3,
		`baseline_state{model="qwen",phase="decode",source="main",state="warming"}`: 1,
		`baseline_state{model="qwen",phase="decode",source="main",state="ready"}`:   0,
		`baseline_state{model="qwen",phase="decode",source="main",state="frozen"}`:  0,
		`baseline_state{model="qwen",phase="decode",source="main",state="stale"}`:   0,
	})
}

func TestStrataShowAll(t *testing.T) {
	m, reg := newMetrics(t, Options{Strata: true})
	m.Publish(fullSnapshot())
	wantSamples(t, reg, []string{"baseline_tokens_per_second", "baseline_samples", "baseline_adopted_total"}, map[string]float64{
		`baseline_tokens_per_second{concurrency="1",model="qwen",phase="decode",source="main"}`: 46.8,
		`baseline_samples{concurrency="1",model="qwen",phase="decode",source="main"}`:           30,
		`baseline_samples{concurrency="2",model="qwen",phase="decode",source="main"}`:           4,
		`baseline_adopted_total{concurrency="1",model="qwen",phase="decode",source="main"}`:     1,
		`baseline_adopted_total{concurrency="2",model="qwen",phase="decode",source="main"}`:     2,
	})
}

func TestEpisodeGaugesFollowTheSnapshot(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Row(okRow())
	open := event.Episode{StartNS: startNS, Source: "main", Model: "qwen", Phase: event.PhaseDecode, Cause: event.CauseLoss, Leg: "rpc-b"}
	closed := open
	closed.EndNS = startNS + second
	const active = `episode_active{model="qwen",phase="decode",source="main"}`
	const cause = `episode_cause{cause="loss",leg="rpc-b",model="qwen",source="main"}`
	for _, step := range []struct {
		name     string
		episodes []event.Episode
		want     map[string]float64
	}{
		{"none", nil, map[string]float64{active: 0}},
		{"open", []event.Episode{open}, map[string]float64{active: 1, cause: 1}},
		{"closed, remembered", []event.Episode{closed}, map[string]float64{active: 0, cause: 0}},
		{"closed, and a new one of the same cause", []event.Episode{closed, open}, map[string]float64{active: 1, cause: 1}},
		{"the same, other order", []event.Episode{open, closed}, map[string]float64{active: 1, cause: 1}},
		{"forgotten", nil, map[string]float64{active: 0}},
	} {
		t.Run(step.name, func(t *testing.T) {
			m.Publish(&event.Snapshot{TimeNS: startNS, Episodes: step.episodes})
			wantSamples(t, reg, []string{"episode_active", "episode_cause"}, step.want)
		})
	}
}

func TestInFlightOfWhatDoesNotFitAddsUp(t *testing.T) {
	m, reg := newMetrics(t, Options{MaxModels: 1})
	m.Publish(&event.Snapshot{TimeNS: startNS, InFlight: []event.InFlight{
		{Source: "main", Model: "a", Requests: 0}, {Source: "main", Model: "b", Requests: 2}, {Source: "main", Model: "c", Requests: 3},
	}})
	wantSamples(t, reg, []string{"requests_in_flight"}, map[string]float64{
		`requests_in_flight{model="a",source="main"}`:     0,
		`requests_in_flight{model="other",source="main"}`: 5,
	})
}

func TestTwoMetricsCannotShareARegistry(t *testing.T) {
	_, reg := newMetrics(t, Options{})
	if _, err := New(Options{Registerer: reg}); err == nil {
		t.Error("no error")
	}
	if _, err := New(Options{}); err == nil {
		t.Error("no error without a registerer")
	}
}
