package export

import (
	"fmt"
	"testing"
	"time"

	"grayfail/event"
)

func httpStages(upstream string) event.HTTPStages {
	return event.HTTPStages{Upstream: upstream, Durations: map[event.HTTPStage]time.Duration{
		event.HTTPStageConnect: time.Millisecond, event.HTTPStageFirstByte: 2 * time.Second,
	}}
}

// TestHTTPStages: what did not happen has no series, not one at zero.
func TestHTTPStages(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.HTTPStages(event.HTTPStages{Upstream: "idle:80"})
	m.HTTPStages(httpStages("gpu:8080"))
	m.HTTPStages(httpStages("gpu:8080"))
	m.HTTPStages(event.HTTPStages{Upstream: "a\nb", Durations: map[event.HTTPStage]time.Duration{
		event.HTTPStageRead: time.Second, event.HTTPStageWrite: -1, "lunch": time.Hour,
	}})
	const name = "request_http_stage_seconds"
	wantSamples(t, reg, []string{name, "series_overflow_total"}, map[string]float64{
		name + `_count{stage="connect",upstream="gpu:8080"}`:        2,
		name + `_sum{stage="connect",upstream="gpu:8080"}`:          0.002,
		name + `_count{stage="first_byte",upstream="gpu:8080"}`:     2,
		name + `_sum{stage="first_byte",upstream="gpu:8080"}`:       4,
		name + `_count{stage="read",upstream="a` + "\ufffd" + `b"}`: 1,
		name + `_sum{stage="read",upstream="a` + "\ufffd" + `b"}`:   1,
		"series_overflow_total":                                     2,
	})
}

func TestUpstreamsAreBounded(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	for i := range maxUpstreams + 5 {
		m.HTTPStages(httpStages(fmt.Sprint("u", i, ":80")))
	}
	got := samples(t, reg, "request_http_stage_seconds", "series_overflow_total")
	if n := len(got); n != (maxUpstreams+1)*2*2+1 {
		t.Errorf("%d samples", n)
	}
	if other := got[`request_http_stage_seconds_count{stage="connect",upstream="other"}`]; other != 5 || got["series_overflow_total"] != 5 {
		t.Errorf("other has %v calls, overflow %v, want 5", other, got["series_overflow_total"])
	}
}
