package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"grayfail/event"
)

// verdictTime is how long the exporter's verdicts are waited for. It judges a
// request two seconds after its end, and its log follower may add one.
const verdictTime = 20 * time.Second

// near is how far the end of a row may be from that of our request: two
// programs read the clock, and the exporter ends a phase at its last token.
const near = 2 * time.Second

// verdicts fills in what the exporter says of each answer: the row of decode
// whose end is nearest to the answer's, each row for one answer. What it says
// nothing of within verdictTime stays without a verdict.
func verdicts(ctx context.Context, client *http.Client, exporter string, answers []*answer) error {
	if exporter == "" || len(answers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, verdictTime)
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		rows, err := fetchRows(ctx, client, exporter)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if match(answers, rows) == len(answers) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func fetchRows(ctx context.Context, client *http.Client, exporter string) ([]event.Row, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, exporter+"/api/v1/requests?limit=2048", nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("exporter: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("exporter: %s", resp.Status)
	}
	var doc struct{ Requests []event.Row }
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		return nil, fmt.Errorf("exporter: %w", err)
	}
	return doc.Requests, nil
}

// match gives each answer its row and says how many have one.
func match(answers []*answer, rows []event.Row) (matched int) {
	taken := make(map[int]bool)
	for _, a := range answers {
		best, distance := -1, near
		for i := range rows {
			r := &rows[i]
			if r.Phase != event.PhaseDecode || taken[i] || r.EndNS < a.start.UnixNano() {
				continue
			}
			if d := a.end.Sub(time.Unix(0, r.EndNS)).Abs(); d < distance {
				best, distance = i, d
			}
		}
		if best < 0 {
			continue
		}
		taken[best] = true
		matched++
		r := &rows[best]
		a.request.Verdict, a.request.Relative = r.Verdict, r.R
		a.request.NamedLeg, a.request.Cause = r.Leg, r.Cause
		if r.Verdict == event.VerdictSlow {
			excess := r.ExcessMS / 1e3
			a.request.Excess = &excess
		}
	}
	return matched
}
