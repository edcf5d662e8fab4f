package export

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/rs/zerolog"

	"grayfail/event"
)

func TestExemplarsAreInOpenMetrics(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	feedEverything(m)
	for _, id := range hostile {
		m.Row(event.Row{ID: id, Source: "main", Model: "qwen", Phase: event.PhaseDecode, Verdict: event.VerdictOK, R: ptr(1.5)})
	}
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	w := httptest.NewRecorder()
	Handler(reg, zerolog.Nop()).ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/openmetrics-text") {
		t.Fatalf("%d %s", w.Code, w.Header().Get("Content-Type"))
	}
	body := w.Body.String()
	if !strings.HasSuffix(body, "# EOF\n") {
		t.Error("no end: the scrape is cut")
	}
	const want = `grayfail_request_normalized_rate_bucket{model="qwen",phase="decode",source="main",le="0.2"} 1 # {request_id="req-17"} 0.16378600823045267`
	if !strings.Contains(body, want) {
		t.Errorf("no line %s", want)
	}
}

func TestNativeHistogramsAreInProtobuf(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	feedEverything(m)
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	w := httptest.NewRecorder()
	Handler(reg, zerolog.Nop()).ServeHTTP(w, r)
	decoder := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
	histograms := 0
	for {
		var f dto.MetricFamily
		if err := decoder.Decode(&f); err != nil {
			break
		}
		if f.GetType() != dto.MetricType_HISTOGRAM {
			continue
		}
		histograms++
		h := f.GetMetric()[0].GetHistogram()
		if h.Schema == nil || len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) == 0 {
			t.Errorf("%s: schema %v, %d spans, %d classic buckets: want both kinds", f.GetName(), h.Schema, len(h.GetPositiveSpan()), len(h.GetBucket()))
		}
	}
	want := 0
	for _, d := range Descriptions(false) {
		if d.Type == Histogram {
			want++
		}
	}
	if histograms != want {
		t.Errorf("%d histograms, want %d", histograms, want)
	}
}

// What one collector gets wrong is logged and costs its own series only.
func TestAnIncompleteScrapeIsStillServed(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	feedEverything(m)
	broken := prometheus.NewDesc("broken", "Broken.", nil, nil)
	reg.MustRegister(brokenCollector{broken})
	var log bytes.Buffer
	w := httptest.NewRecorder()
	Handler(reg, zerolog.New(&log)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "grayfail_leg_info{") {
		t.Errorf("%d: %.200s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "no such thing") {
		t.Errorf("log: %s", log.String())
	}
}

type brokenCollector struct{ desc *prometheus.Desc }

func (c brokenCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }
func (c brokenCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(c.desc, errors.New("no such thing"))
}

var _ promhttp.Logger = promLog{}
