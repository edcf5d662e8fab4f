package export

import (
	"fmt"

	"grayfail/event"
	"grayfail/export/board"
)

// blindHeadlines tells what this program cannot see. A kernel without RDMA is
// no blindness: there is nothing to see.
func blindHeadlines(s *event.Snapshot) []board.Headline {
	var out []board.Headline
	for i := range s.Statuses {
		st := &s.Statuses[i]
		if st.Availability != event.Failed && (st.Availability != event.Unsupported || st.Collector == "rdma") {
			continue
		}
		h := board.Headline{Level: board.Warn, Text: fmt.Sprintf("Blind: collector %s is down", label(st.Collector)), Runbook: "GrayfailCollectorDown"}
		if st.Collector == "tcp_events" {
			h.Text = "Blind: collector tcp_events is down, and no leg can be named without it"
		}
		for _, p := range st.Problems {
			h.Facts = append(h.Facts, fmt.Sprintf("%s: %s", label(p.Reason), sentence(p.Detail)))
		}
		out = append(out, h)
	}
	return out
}

// judging says whether a request that comes now would be judged.
func judging(s *event.Snapshot) bool {
	for i := range s.Baselines {
		if state := s.Baselines[i].State; state == event.BaselineReady || state == event.BaselineFrozen {
			return true
		}
	}
	return false
}

// calm is the headline while nothing is known to be wrong: that is only as good
// as what could be judged.
func calm(s *event.Snapshot, rows []event.Row) board.Headline {
	if len(rows) == 0 && len(s.Baselines) == 0 {
		return board.Headline{Level: board.Wait, Text: "No request has been seen yet",
			Next: "send one. Sources are proxies (requests.proxies), logs (requests.llama_logs), traces (requests.otlp) and POST /api/v1/requests (requests.push)."}
	}
	if !judging(s) {
		most := 0
		for i := range s.Baselines {
			most = max(most, s.Baselines[i].Samples)
		}
		return board.Headline{Level: board.Wait, Text: "Learning what is usual: no request can be judged yet",
			Facts: []string{fmt.Sprintf("The fullest baseline has %d requests; detector.min_samples (10 unless set) make it ready.", most)}}
	}
	h := board.Headline{Level: board.Good, Text: "Nothing is slow"}
	for _, e := range episodesOf(s) { // none is open
		h.Facts = append(h.Facts, fmt.Sprintf("The last episode ended %s, %s ago: %s, %s; %d of %d requests were slow.",
			moment(e.EndNS, s.TimeNS), lasts(e.EndNS, s.TimeNS), label(e.Model), boardBlame(e.Cause, e.Leg), e.Slow, e.Requests))
		break
	}
	judged, slow, newestNS := 0, 0, int64(0)
	for i := range rows {
		newestNS = max(newestNS, rows[i].EndNS)
		switch rows[i].Verdict {
		case event.VerdictOK:
			judged++
		case event.VerdictSlow:
			judged++
			slow++
		}
	}
	if judged == 0 {
		h.Facts = append(h.Facts, "No request has come since the start.")
		return h
	}
	h.Facts = append(h.Facts, fmt.Sprintf("Of the last %d verdicts %d were slow, the newest request ended %s.", judged, slow, moment(newestNS, s.TimeNS)))
	return h
}
