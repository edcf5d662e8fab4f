package export

import (
	"slices"

	"grayfail/event"
)

// HTTPStages observes where the time of one call to an upstream went. A stage
// that is none of ours, or took less than no time, is counted as overflow.
func (m *Metrics) HTTPStages(s event.HTTPStages) {
	if len(s.Durations) == 0 {
		return
	}
	upstream := m.upstreams.Admit(label(s.Upstream))
	for stage, d := range s.Durations {
		if d < 0 || !slices.Contains(event.HTTPStageNames, stage) {
			m.overflow.Add(1)
			continue
		}
		m.httpStage.WithLabelValues(upstream, string(stage)).Observe(d.Seconds())
	}
}
