package export

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"grayfail/event"
	"grayfail/export/board"
)

// showPage gives the text of each section of the page by its id, one line an
// element, and the whole of it.
func showPage(t *testing.T, s *event.Snapshot, rows ...event.Row) (map[string]string, string) {
	t.Helper()
	a := NewAPI(func(l *event.Leg) string { return "why: " + l.Reason })
	a.Publish(s)
	for _, r := range rows {
		a.AddRow(r)
	}
	w := do(apiMux(a), http.MethodGet, "/")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Fatalf("%d %s", w.Code, w.Header().Get("Content-Type"))
	}
	doc, err := html.Parse(strings.NewReader(w.Body.String()))
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for n := range doc.Descendants() {
		if id := attribute(n, "id"); id != "" {
			sections[id] = text(n)
		}
	}
	return sections, w.Body.String()
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	var words []string
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			words = append(words, strings.Fields(d.Data)...)
		}
	}
	return strings.Join(words, " ")
}

// ready is a snapshot of a host on which all works and nothing is slow.
func ready() *event.Snapshot {
	return &event.Snapshot{
		TimeNS: startNS,
		Legs: []event.Leg{{Name: "rpc-b", Peer: netip.MustParseAddrPort("10.77.2.2:50052"), Device: "veth-b",
			Transport: event.TransportTCP, Connections: 1, RTT: 85 * time.Microsecond, Process: "llama-server", PID: 4711}},
		Baselines:    []event.Baseline{{Source: "main", Model: "qwen", Phase: event.PhaseDecode, Concurrency: "1", Rate: 121.5, Samples: 30, State: event.BaselineReady, Requests: 60}},
		Statuses:     []event.Status{{Collector: "tcp_events", Availability: event.Up}},
		ConfigReload: event.ConfigReload{Successful: true, TimeNS: startNS},
	}
}

// TestBoardSays holds what each state of a host makes the page say, where.
func TestBoardSays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*event.Snapshot)
		rows   []event.Row
		want   map[string][]string
		not    map[string][]string
	}{
		{name: "starting", change: func(s *event.Snapshot) { *s = event.Snapshot{} }, want: map[string][]string{
			"head": {"Starting: nothing has been sampled yet"}, "asof": {"Nothing has been sampled yet"},
			"legs": {"No leg has been found. One appears when a process here connects"}, "models": {"No request has been seen. Point clients at a proxy"},
			"episodes": {"No episode is open."}, "requests": {"No slow request is remembered."}, "collectors": {"No collector has been tried yet."},
		}, not: map[string][]string{"head": {"Nothing is slow"}}},
		{name: "first run", change: func(s *event.Snapshot) { s.Baselines = nil }, want: map[string][]string{
			"head": {"No request has been seen yet", "Next: send one.", "requests.proxies"}, "legs": {"rpc-b", "10.77.2.2:50052", "llama-server [4711]", "85µs"},
		}, not: map[string][]string{"head": {"Nothing is slow"}}},
		{name: "learning", change: func(s *event.Snapshot) { s.Baselines[0].State, s.Baselines[0].Samples = event.BaselineWarming, 4 },
			rows: []event.Row{{Source: "main", Model: "qwen", Phase: event.PhaseDecode, Verdict: event.VerdictUnknown, Rate: ptr(120)}},
			want: map[string][]string{"head": {"Learning what is usual", "has 4 requests"}, "models": {"warming", "last 1 requests: 0 slow, 1 not judged."}},
			not:  map[string][]string{"head": {"Nothing is slow"}}},
		{name: "well", rows: []event.Row{okRow()}, want: map[string][]string{
			"head": {"Nothing is slow", "Of the last 1 verdicts 0 were slow", "08:00:01 UTC"}, "collectors": {"Working: tcp_events."}, "models": {"qwen decode, main", "Last 120", "Usual 121.5", "Baseline ready"},
		}, not: map[string][]string{"requests": {"req-18"}}},
		{name: "over", change: func(s *event.Snapshot) {
			s.Episodes = []event.Episode{{StartNS: startNS - 100*second, EndNS: startNS - 50*second, Source: "main", Model: "qwen", Phase: event.PhaseDecode, Cause: event.CauseLocal, Slow: 3, Requests: 9}}
		}, rows: []event.Row{okRow()}, want: map[string][]string{
			"head":     {"Nothing is slow", "The last episode ended 07:59:10 UTC, 50s ago: qwen, this host: local; 3 of 9 requests were slow."},
			"episodes": {"No episode is open.", "Past", "From 07:58:20 UTC to 07:59:10 UTC (50s): 3 of 9 requests slow."},
		}},
		{name: "a leg is named", change: func(s *event.Snapshot) {
			s.Episodes = []event.Episode{{StartNS: startNS - 10*second, Source: "main", Model: "qwen", Phase: event.PhaseDecode, Cause: event.CauseLoss, Leg: "rpc-b", Slow: 3, Requests: 4}}
			s.Baselines[0].State = event.BaselineFrozen
		}, rows: []event.Row{okRow(), slowRow()}, want: map[string][]string{
			"head": {"qwen is slow because of leg rpc-b: loss", "Since 07:59:50 UTC (10s) 3 of 4 requests ran below half of their usual decode rate.",
				"The newest 1 of them lost 1.39 s, 1.38 s of it (100%) on rpc-b.", "rpc-b goes to 10.77.2.2:50052 over veth-b.", "Evidence: 11 out-of-order segments", "Next: find the drops between both hosts", "alerts/runbooks/GrayfailPathNamed.md"},
			"legs":     {"rpc-b slow: loss"},
			"requests": {"rpc-b: loss", "1.39 s lost", "rpc-b 1.38 s (100%)", "19.9 of 121.5", "req-17"},
			"episodes": {"rpc-b: loss", "Since 07:59:50 UTC (10s): 3 of 4 requests slow, 1.39 s by the newest 1 lost."},
		}, not: map[string][]string{"head": {"Nothing is slow"}}},
		{name: "no leg is named", change: func(s *event.Snapshot) {
			for i, cause := range []event.Cause{event.CauseLocal, event.CauseCommon, event.CauseUnattributed, event.CauseNone} {
				s.Episodes = append(s.Episodes, event.Episode{StartNS: startNS - int64(i+1)*second, Model: "qwen", Cause: cause})
			}
		}, want: map[string][]string{"head": {"the time is lost on this host, on no leg", "several legs slowed together, none is to blame", "no leg is named: too little evidence", "alerts/runbooks/GrayfailSlowRequests.md"}},
			not: map[string][]string{"head": {"because of leg", "rpc-b"}}},
		{name: "fallback", change: func(s *event.Snapshot) {
			s.Legs = append(s.Legs, event.Leg{Name: "w3", Transport: event.TransportFallback, Reason: "port_not_probed", RDMADevice: "mlx5_1", RDMAPort: 2},
				event.Leg{Name: "from 10.0.0.9", Role: event.RoleServer, Transport: event.TransportTCP})
		}, rows: []event.Row{okRow()}, want: map[string][]string{
			"head": {"1 of 2 legs run over TCP although RDMA is there: w3", "w3: why: port_not_probed.", "GrayfailLegFallback"},
			"legs": {"Process w3 fallback why: port_not_probed mlx5_1/2"}, // trouble comes first
		}, not: map[string][]string{"head": {"Nothing is slow"}}},
		{name: "legs in trouble", change: func(s *event.Snapshot) {
			s.Legs = []event.Leg{{Name: "w1", Transport: event.TransportStalled}, {Name: "w2", Transport: event.TransportHalfOpen}, {Name: "w3", Transport: event.TransportTCP, Expected: "rdma"}, {Name: "w4", Transport: event.TransportDead, Expected: "rdma"}}
		}, want: map[string][]string{"head": {"Leg w2 is half_open", "Leg w4 is dead", "Nothing moves on w1", "RDMA is expected and not used: w3", "GrayfailLegDead", "GrayfailLegStuck", "GrayfailLegNotRDMA"}}},
		{name: "blind", change: func(s *event.Snapshot) {
			s.Statuses = []event.Status{
				{Collector: "tcp_events", Availability: event.Failed, Problems: []event.Problem{{Reason: "no_permission", Detail: "give it CAP_BPF"}}},
				{Collector: "rdma", Availability: event.Unsupported, Problems: []event.Problem{{Reason: "not_supported", Detail: "no RDMA core"}}},
				{Collector: "tcp_sockets", Availability: event.Degraded, Problems: []event.Problem{{Reason: "sockets_overflow", Detail: "7 left out"}}},
				{Collector: "qdisc"},
			}
		}, rows: []event.Row{okRow()}, want: map[string][]string{
			"head":       {"Blind: collector tcp_events is down, and no leg can be named without it", "no_permission: give it CAP_BPF"},
			"collectors": {"tcp_events down no_permission", "rdma down not_supported no RDMA core", "tcp_sockets degraded sockets_overflow 7 left out", "Not tried yet: qdisc."},
		}, not: map[string][]string{"head": {"Nothing is slow", "rdma"}}},
		{name: "reload failed", change: func(s *event.Snapshot) { s.ConfigReload.Successful = false }, want: map[string][]string{"head": {"The last reload failed"}}},
		{name: "eroded", change: func(s *event.Snapshot) { s.Baselines[0].Eroded, s.Baselines[0].Anchor = true, 200 }, want: map[string][]string{"models": {"sunk below 0.8 of the 200 tokens/s"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := ready()
			if tt.change != nil {
				tt.change(s)
			}
			got, _ := showPage(t, s, tt.rows...)
			for id, wants := range tt.want {
				for _, want := range wants {
					if !strings.Contains(got[id], want) {
						t.Errorf("%s lacks %q:\n%s", id, want, got[id])
					}
				}
			}
			for id, wants := range tt.not {
				for _, want := range wants {
					if strings.Contains(got[id], want) {
						t.Errorf("%s says %q:\n%s", id, want, got[id])
					}
				}
			}
		})
	}
}

// TestBoardEscapes: names come from clients, kernels and files.
func TestBoardEscapes(t *testing.T) {
	const evil = `<script>alert(1)</script>"'><img src=x onerror=y>`
	_, page := showPage(t, &event.Snapshot{
		TimeNS:    startNS,
		Legs:      []event.Leg{{Name: evil, Netns: evil, Reason: evil, Transport: event.Transport(evil), Device: evil, RDMADevice: evil, Process: evil, Expected: evil}},
		Episodes:  []event.Episode{{Source: evil, Model: evil, Phase: event.Phase(evil), Cause: event.Cause(evil), Leg: evil}, {EndNS: 1, Model: evil, Cause: event.Cause(evil)}},
		Baselines: []event.Baseline{{Source: evil, Model: evil, Concurrency: evil, State: event.BaselineState(evil)}},
		Statuses:  []event.Status{{Collector: evil}, {Collector: evil, Availability: event.Failed, Problems: []event.Problem{{Reason: evil, Detail: evil}}}, {Collector: evil, Availability: event.Unsupported}},
	}, event.Row{
		ID: evil, Source: evil, Model: evil, Phase: event.Phase(evil), Verdict: event.VerdictSlow, Leg: evil, Detail: evil, Cause: event.Cause(evil), EndNS: 1,
		ExcessMS: 1, LegsMS: event.LegTimes{evil: 1}, HTTP: &event.HTTPStages{Upstream: evil, Durations: map[event.HTTPStage]time.Duration{event.HTTPStageRead: 1}},
	})
	if strings.Contains(page, "<script>") || strings.Contains(page, "<img") || strings.Count(page, "alert(1)") < 30 {
		t.Errorf("page is not escaped, or lacks the names:\n%s", page)
	}
}

// TestBoardLoadsNothingFromOutside: and a browser is told to keep to that.
func TestBoardLoadsNothingFromOutside(t *testing.T) {
	a := NewAPI(nil)
	mux := apiMux(a)
	w := do(mux, http.MethodGet, "/")
	if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("Content-Security-Policy %q", csp)
	}
	for _, path := range []string{"/", "/board/style.css", "/board/live.js"} {
		w := do(mux, http.MethodGet, path)
		for _, outside := range []string{"http:", "https:", "//cdn", "@import", "url("} {
			if w.Code != http.StatusOK || strings.Contains(w.Body.String(), outside) {
				t.Errorf("%s: %d, holds %q: %t", path, w.Code, outside, strings.Contains(w.Body.String(), outside))
			}
		}
	}
}

// TestBoardIsBounded: a page stays one that can be read, whatever there is.
func TestBoardIsBounded(t *testing.T) {
	s := ready()
	var rows []event.Row
	for i := range 3000 {
		r := slowRow()
		r.Model, r.EndNS = strings.Repeat("m", 300)+string(rune('a'+i%26))+string(rune('a'+i/26%26)), startNS+int64(i)
		rows = append(rows, r)
		s.Episodes = append(s.Episodes, event.Episode{StartNS: startNS, EndNS: int64(i%2) * (startNS + 1), Model: r.Model})
	}
	for range 300 {
		s.Legs = append(s.Legs, event.Leg{Name: "w", Transport: event.TransportDead}, event.Leg{Name: "x", Transport: event.TransportFallback})
	}
	p := boardPage(s, rows, func(*event.Leg) string { return "why" })
	if len(p.Slow) != boardRows || len(p.Past) != boardPast || len(p.Models) != boardModelsMax || len(p.Open) != boardOpen || len(p.Head) > 2*boardHeadlines+3 {
		t.Errorf("%d slow, %d past, %d models, %d open, %d headlines", len(p.Slow), len(p.Past), len(p.Models), len(p.Open), len(p.Head))
	}
	for _, m := range p.Models {
		if len(m.Plot.Points) > boardPoints {
			t.Errorf("%d points", len(m.Plot.Points))
		}
	}
	if page, err := board.Render(p); err != nil || len(page) > 1<<20 {
		t.Errorf("%d bytes, %v", len(page), err)
	}
}

func TestTallyShares(t *testing.T) {
	var all tally
	for _, r := range []event.Row{
		{ExcessMS: 1000, LegsMS: event.LegTimes{"a": 700, "b": 400, "c": 1}, LocalMS: -101, EndNS: 2, Detail: "newest"},
		{ExcessMS: 1000, LegsMS: event.LegTimes{"a": 1000}, EndNS: 1, Detail: "older"},
	} {
		all.add(&r)
	}
	want := []board.Share{{Name: "a", Seconds: "1.70 s", Percent: 85, Named: true}, {Name: "b", Seconds: "0.400 s", Percent: 20}, {Name: "on no leg", Seconds: "-0.101 s", Percent: -5.05, Local: true}}
	if got := all.shares("a"); !slices.Equal(got, want) || all.detail != "newest" {
		t.Errorf("%+v, detail %q", got, all.detail)
	}
	if got := (&tally{}).shares("a"); got != nil {
		t.Errorf("shares of nothing: %+v", got)
	}
}
