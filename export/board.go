package export

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/version"

	"grayfail/event"
	"grayfail/export/board"
)

// boardPage is what the page at / shows of a snapshot and of the rows that are
// remembered, newest first. reason gives a leg's reason in words.
func boardPage(s *event.Snapshot, rows []event.Row, reason func(*event.Leg) string) *board.Page {
	p := &board.Page{
		Version: version.Info(), AsOf: clock(s.TimeNS),
		Models: boardModels(s, rows), Slow: boardSlow(rows, s.TimeNS),
		LegsHelp:   "One appears when a process here connects to a peer at one of the ports in legs.discover.ports, or to one in legs.static.",
		ModelsHelp: "Point clients at a proxy (requests.proxies), let the engine's log or traces be read (requests.llama_logs, requests.otlp), or push: POST /api/v1/requests.",
	}
	for _, e := range episodesOf(s) {
		list, most := &p.Open, boardOpen
		if e.EndNS != 0 {
			list, most = &p.Past, boardPast
		}
		if len(*list) < most {
			*list = append(*list, boardEpisode(&e, rows, s.TimeNS))
		}
	}
	for i := range s.Legs {
		leg := boardLeg(&s.Legs[i], reason)
		for _, e := range s.Episodes {
			if e.EndNS == 0 && e.Leg != "" && e.Leg == s.Legs[i].Name {
				leg.Level, leg.Slow = board.Bad, label(string(e.Cause))
			}
		}
		p.Legs = append(p.Legs, leg)
	}
	slices.SortStableFunc(p.Legs, func(x, y board.Leg) int { // what is in trouble first
		return cmp.Compare(legOrder[x.Level], legOrder[y.Level])
	})
	boardCollectors(p, s.Statuses)
	p.Head = headlines(s, rows, reason)
	return p
}

var legOrder = map[board.Level]int{board.Bad: 0, board.Warn: 1, board.Wait: 2, board.Good: 2}

func boardLeg(l *event.Leg, reason func(*event.Leg) string) board.Leg {
	leg := board.Leg{
		Level: legLevel(l), TransportLevel: legLevel(l), Name: label(l.Name), Peer: peerText(l.Peer), Netns: label(l.Netns),
		Transport: string(cmp.Or(l.Transport, event.TransportUnknown)), Reason: sentence(reason(l)),
		Connections: fmt.Sprint(l.Connections),
	}
	if l.Role != event.RoleClient {
		leg.Role = l.Role.String()
	}
	if l.RDMADevice != "" {
		leg.RDMA = fmt.Sprintf("%s/%d", label(l.RDMADevice), l.RDMAPort)
	}
	if l.RTT > 0 {
		leg.RTT = l.RTT.Round(time.Microsecond).String()
	}
	if l.Process != "" || l.PID != 0 {
		leg.Process = fmt.Sprintf("%s [%d]", label(l.Process), l.PID)
	}
	return leg
}

// legLevel: dead and half-open break requests, a fallback slows them.
func legLevel(l *event.Leg) board.Level {
	switch l.Transport {
	case event.TransportDead, event.TransportHalfOpen:
		return board.Bad
	case event.TransportFallback, event.TransportQueued, event.TransportStalled:
		return board.Warn
	case event.TransportRDMA, event.TransportTCP:
		return board.Good
	}
	return board.Wait
}

func boardCollectors(p *board.Page, statuses []event.Status) {
	for i := range statuses {
		st := &statuses[i]
		name := label(st.Collector)
		down := st.Availability == event.Unsupported || st.Availability == event.Failed
		switch {
		case st.Availability == event.NotTried:
			p.Untried = append(p.Untried, name)
		case !down && len(st.Problems) == 0:
			p.Working = append(p.Working, name)
		case len(st.Problems) == 0:
			p.Problems = append(p.Problems, board.Problem{Collector: name, Down: true})
		}
		for _, problem := range st.Problems {
			p.Problems = append(p.Problems, board.Problem{
				Collector: name, Reason: label(problem.Reason), Detail: sentence(problem.Detail), Down: down,
			})
		}
	}
}

// clock is a time with its date; "" for none.
func clock(ns int64) string {
	if ns == 0 {
		return ""
	}
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC")
}

// moment leaves the date out where it is that of now.
func moment(ns, nowNS int64) string {
	t := time.Unix(0, ns).UTC()
	if ns != 0 && t.Truncate(24*time.Hour).Equal(time.Unix(0, nowNS).UTC().Truncate(24*time.Hour)) {
		return t.Format("15:04:05 UTC")
	}
	return clock(ns)
}
