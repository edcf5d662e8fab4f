package export

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"grayfail/event"
)

// A hundred scrapers at once, while snapshots are published and events come
// in: under -race nothing is shared unguarded, and every scrape is whole.
func TestHundredScrapesWhilePublishing(t *testing.T) {
	defer goleak.VerifyNone(t)
	m, reg := newMetrics(t, Options{MaxLegs: 8})
	api, log := NewAPI(nil), NewLog(zerolog.New(io.Discard))
	mux := http.NewServeMux()
	api.Register(mux)
	mux.Handle("GET /metrics", Handler(reg, zerolog.Nop()))
	feedEverything(m)

	var done atomic.Bool
	var producers, scrapers sync.WaitGroup
	produce := func(one func(i int)) {
		producers.Go(func() {
			for i := 0; !done.Load(); i++ {
				one(i)
			}
		})
	}
	produce(func(i int) {
		s := fullSnapshot()
		s.TimeNS += int64(i) * second
		m.Publish(s)
		api.Publish(s)
		log.Statuses(s.Statuses)
	})
	produce(func(i int) {
		leg := fmt.Sprint("leg-", i%12)
		m.Exchange(exchange(leg))
		m.Retransmit(&event.Retransmit{Leg: leg, Kind: event.RetransmitRTO})
		if i%50 == 0 {
			m.Forget(leg)
		}
	})
	produce(func(i int) {
		r := slowRow()
		r.Model = fmt.Sprint("m", i%70)
		m.Row(r)
		m.EpisodeOpened(event.Episode{Source: "main", Model: r.Model})
		m.HTTPStages(httpStages(fmt.Sprint("u", i%70, ":80")))
		api.AddRow(r)
		log.Row(r)
	})
	for range 100 {
		scrapers.Go(func() {
			for _, path := range []string{"/metrics", "/api/v1/legs", "/api/v1/requests", "/"} {
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != http.StatusOK {
					t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
				}
				if path == "/metrics" && !strings.Contains(w.Body.String(), "grayfail_leg_info{") {
					t.Error("a scrape lacks the snapshot")
				}
			}
		})
	}
	scrapers.Wait()
	done.Store(true)
	producers.Wait()
}

// All scrapes of one snapshot share what is built for it.
func TestASnapshotIsBuiltOnce(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	q := event.Qdisc{Device: "eth0"}
	m.Publish(&event.Snapshot{TimeNS: startNS, Qdiscs: []event.Qdisc{q, q}})
	for range 3 {
		samples(t, reg)
	}
	if v := samples(t, reg)["series_overflow_total"]; v != 7 {
		t.Errorf("overflow %v, want 7: counted once a snapshot, not once a scrape", v)
	}
}

func BenchmarkPublish(b *testing.B) {
	m, _ := newMetrics(b, Options{})
	s := largeSnapshot(256, 1000)
	b.ReportAllocs()
	for b.Loop() {
		m.Publish(s)
	}
}

// BenchmarkScrape is a whole scrape, each of a new snapshot.
func BenchmarkScrape(b *testing.B) {
	scrape := func(b *testing.B, s *event.Snapshot, o Options, legs int) {
		o.Registerer = prometheus.NewRegistry() // as in production: not pedantic
		m, err := New(o)
		if err != nil {
			b.Fatal(err)
		}
		for i := range legs {
			m.Exchange(&event.Exchange{Leg: s.Legs[i].Name, Duration: time.Millisecond, Ack: time.Microsecond})
		}
		h := Handler(o.Registerer.(prometheus.Gatherer), zerolog.Nop())
		b.ReportAllocs()
		for b.Loop() {
			m.Publish(s) // every scrape sees a new snapshot and builds it
			h.ServeHTTP(nowhere{}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		}
	}
	for _, n := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("qdiscs=%d", n), func(b *testing.B) { scrape(b, largeSnapshot(0, n), Options{}, 0) })
	}
	for _, n := range []int{16, 64, 256} {
		b.Run(fmt.Sprintf("legs=%d", n), func(b *testing.B) { scrape(b, largeSnapshot(n, 0), Options{}, n) })
	}
	for _, n := range []int{16, 64, 256} {
		b.Run(fmt.Sprintf("strata=%d", n), func(b *testing.B) { scrape(b, strataSnapshot(n), Options{Strata: true}, 0) })
	}
}

// strataSnapshot has n baselines, eight to a model.
func strataSnapshot(n int) *event.Snapshot {
	s := &event.Snapshot{TimeNS: startNS}
	for i := range n {
		s.Baselines = append(s.Baselines, event.Baseline{
			Source: "main", Model: fmt.Sprint("m", i/8), Phase: event.PhaseDecode, Concurrency: fmt.Sprint(i % 8), Rate: 40, Samples: 30, State: event.BaselineReady,
		})
	}
	return s
}

func BenchmarkCollectThousandQdiscs(b *testing.B) {
	m, _ := newMetrics(b, Options{})
	s := largeSnapshot(0, 1000)
	b.ReportAllocs()
	for b.Loop() {
		m.Publish(s)
		ch := make(chan prometheus.Metric, 8192)
		(*snapshotCollector)(m).Collect(ch)
	}
}

func BenchmarkRow(b *testing.B) {
	m, _ := newMetrics(b, Options{})
	r := okRow()
	b.ReportAllocs()
	for b.Loop() {
		m.Row(r)
	}
}

func largeSnapshot(legs, qdiscs int) *event.Snapshot {
	s := &event.Snapshot{TimeNS: startNS}
	for i := range legs {
		s.Legs = append(s.Legs, event.Leg{Name: fmt.Sprintf("10.0.%d.%d:50052", i/250, i%250), Transport: event.TransportTCP, RTT: 1})
	}
	for i := range qdiscs {
		s.Qdiscs = append(s.Qdiscs, event.Qdisc{Device: fmt.Sprint("veth", i), Kind: "noqueue", Handle: "0:", Parent: "root", Bytes: uint64(i)})
	}
	return s
}

// nowhere is a client that reads everything and keeps nothing.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}
