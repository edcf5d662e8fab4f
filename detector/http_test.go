package detector

import (
	"testing"

	"grayfail/event"
)

// A slow row tells where the time of its HTTP call went; others are too many.
func TestSlowRowsHaveHTTPStages(t *testing.T) {
	d := New(DefaultConfig())
	nowNS := int64(1_800_000_000e9)
	stages := &event.HTTPStages{Upstream: "gpu:8080"}
	var rows []event.Row
	for i := range 12 {
		r := event.Request{
			ID: string(rune('a' + i)), Source: "main", Model: "m", StartNS: nowNS, FirstTokenNS: nowNS + 1e9, EndNS: nowNS + 3e9,
			GeneratedTokens: 20, DecodeRate: 100, Outcome: event.OutcomeOK, Concurrency: 1, HTTP: stages,
		}
		if i == 11 {
			r.DecodeRate = 30
		}
		d.Request(r)
		nowNS += 6e9
		rows = append(rows, d.Advance(nowNS).Rows...)
	}
	for _, row := range rows {
		slow := row.Verdict == event.VerdictSlow
		if slow != (row.ID == "l" && row.Phase == event.PhaseDecode) || slow != (row.HTTP == stages) {
			t.Errorf("%+v", row)
		}
	}
}
