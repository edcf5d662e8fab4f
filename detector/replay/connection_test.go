package replay_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grayfail/detector"
	"grayfail/event"
)

// Connections that fail are recorded, and a replay names the dead path as the
// live detector did.
func TestFailedConnectionsAreReplayed(t *testing.T) {
	now := int64(1_800_000_000e9)
	var records []event.Record
	request := func(i int, outcome event.Outcome) {
		start := now
		for range 32 {
			for _, leg := range []string{"a", "b"} {
				records = append(records, &event.Exchange{Leg: leg, SendNS: now, Duration: time.Millisecond, FirstByte: 9e5, Ack: 6e4, RequestBytes: 6466, ReplyBytes: 128_000})
				now += 1e6
			}
		}
		if outcome != event.OutcomeOK { // nothing answers at b any more
			records = append(records, &event.Connection{Leg: "b", StartNS: now, EndNS: now + 1e6})
			now += 2e6
		}
		records = append(records, &event.Request{
			ID: fmt.Sprint(i), Source: "s", Model: "m", StartNS: start, FirstTokenNS: start, EndNS: now, GeneratedTokens: 32,
			DecodeRate: 32e9 / float64(now-start), Outcome: outcome, Concurrency: 1,
		})
		now += 1e9
	}
	for i := range 12 {
		request(i, event.OutcomeOK)
	}
	for i := range 3 {
		request(12+i, event.OutcomeError)
	}

	live := detector.New(detector.DefaultConfig())
	var want []event.Row
	var lines []string
	for _, rec := range records {
		switch x := rec.(type) {
		case *event.Exchange:
			want = append(want, live.Advance(x.SendNS+int64(x.Duration)).Rows...)
			live.Exchange(*x)
		case *event.Connection:
			want = append(want, live.Advance(x.EndNS).Rows...)
			live.Connection(*x)
		case *event.Request:
			want = append(want, live.Advance(x.EndNS).Rows...)
			live.Request(*x)
		}
		line, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	want = append(want, live.Flush().Rows...)
	got := run(t, lines).Requests
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("live (-) and replayed (+) differ: %s", diff)
	}
	named := 0
	for _, row := range got {
		if row.Cause == event.CauseDeadPath && row.Leg == "b" {
			named++
		}
	}
	if named != 3 {
		t.Errorf("%d rows name the dead path, want 3", named)
	}
}
