package httploss

import (
	"bytes"
	"context"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"grayfail/event"
)

// stageSums are the exporter's sums of each stage, and how many calls they are
// of.
type stageSums struct {
	sums  map[event.HTTPStage]time.Duration
	calls uint64
}

// stages reads grayfail_request_http_stage_seconds. The exporter counts a call
// before its client has the last byte of the answer.
func (s *staging) stages(ctx context.Context) (stageSums, error) {
	body, err := s.cluster.Fetch(ctx, "http://"+exporterAddr+"/metrics")
	if err != nil {
		return stageSums{}, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return stageSums{}, err
	}
	out := stageSums{sums: make(map[event.HTTPStage]time.Duration)}
	for _, m := range families["grayfail_request_http_stage_seconds"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "stage" {
				stage := event.HTTPStage(l.GetValue())
				out.sums[stage] = time.Duration(m.GetHistogram().GetSampleSum() * 1e9)
				if stage == event.HTTPStageRead {
					out.calls = m.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	return out, nil
}
