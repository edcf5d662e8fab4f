package export

import (
	"cmp"
	"fmt"
	"strings"

	"grayfail/event"
	"grayfail/export/board"
)

// boardHeadlines bounds those of one kind.
const boardHeadlines = 5

// headlines says what whoever was woken needs to know, the worst first. Where
// nothing is wrong it says how much that is worth.
func headlines(s *event.Snapshot, rows []event.Row, reason func(*event.Leg) string) []board.Headline {
	if s.TimeNS == 0 {
		return []board.Headline{{Level: board.Wait, Text: "Starting: nothing has been sampled yet"}}
	}
	var bad, warn []board.Headline
	for _, e := range episodesOf(s) {
		if e.EndNS == 0 && len(bad) < boardHeadlines {
			bad = append(bad, episodeHeadline(s, &e, rows))
		}
	}
	for i := range s.Legs {
		if l := &s.Legs[i]; legLevel(l) == board.Bad && len(bad) < 2*boardHeadlines {
			h := board.Headline{
				Level: board.Bad, Text: fmt.Sprintf("Leg %s is %s", label(l.Name), l.Transport),
				Next: "is the peer's process alive, and does its address answer? Requests that use this leg fail or hang.", Runbook: "GrayfailLegDead",
			}
			if why := reason(l); why != "" {
				h.Facts = []string{sentence(why) + "."}
			}
			bad = append(bad, h)
		}
	}
	warn = append(warn, legHeadlines(s, reason)...)
	warn = append(warn, blindHeadlines(s)...)
	if !s.ConfigReload.Successful && s.ConfigReload.TimeNS != 0 {
		warn = append(warn, board.Headline{Level: board.Warn, Text: "The last reload failed: the configuration of before is in force",
			Next: "grayfail_exporter check-config FILE names line and field.", Runbook: "GrayfailConfigReloadFailed"})
	}
	if len(bad)+len(warn) == 0 || len(bad) == 0 && !judging(s) {
		warn = append(warn, calm(s, rows))
	}
	return append(bad, warn...)
}

// nextByCause are the steps of the alert GrayfailPathNamed and its runbook.
var nextByCause = map[event.Cause]string{
	event.CauseLoss:         "find the drops between both hosts: the peer's qdisc drops and retransmits, then the interfaces' and the switches' error counters.",
	event.CauseDelay:        "find what waits: RTT of the leg against its minimum, queues and rate limits (qdisc backlog, overlimits) at the peer and on the way.",
	event.CausePeerHost:     "look at the peer itself: CPU quota, load, swapping, thermal limits; the network answers in time.",
	event.CauseRDMAFallback: "see why the leg left RDMA: its reason is in the table of legs.",
	event.CauseDeadPath:     "the peer or the way to it does not answer: is its process alive, is its address reachable?",
	event.CauseCommon:       "look at what the legs share: this host's CPU and network, the load, a switch.",
	event.CauseLocal:        "look at this host: CPU quota, another process, thermal limits, GPU clocks, swapping.",
	event.CauseUnattributed: "see below whether a collector is down; else wait for more slow requests.",
}

func episodeHeadline(s *event.Snapshot, e *event.Episode, rows []event.Row) board.Headline {
	t := tallyOf(e, rows)
	h := board.Headline{Level: board.Bad, Next: nextByCause[e.Cause], Runbook: "GrayfailSlowRequests"}
	model := cmp.Or(label(e.Model), "a model without a name")
	switch {
	case e.Leg != "":
		h.Text = fmt.Sprintf("%s is slow because of leg %s: %s", model, label(e.Leg), label(string(e.Cause)))
		h.Runbook = "GrayfailPathNamed"
	case e.Cause == event.CauseLocal:
		h.Text = model + " is slow: the time is lost on this host, on no leg"
	case e.Cause == event.CauseCommon:
		h.Text = model + " is slow: several legs slowed together, none is to blame"
	default:
		h.Text = model + " is slow, and no leg is named: too little evidence"
	}
	h.Facts = append(h.Facts, fmt.Sprintf("Since %s (%s) %d of %d requests ran below half of their usual %s rate.",
		moment(e.StartNS, s.TimeNS), lasts(e.StartNS, s.TimeNS), e.Slow, e.Requests, e.Phase))
	if t.excess > 0 {
		lost := "They lost " + seconds(t.excess/1e3)
		if t.rows < e.Slow {
			lost = fmt.Sprintf("The newest %d of them lost %s", t.rows, seconds(t.excess/1e3))
		}
		if ms, ok := t.legs[e.Leg]; ok {
			lost += fmt.Sprintf(", %s of it (%.0f%%) on %s", seconds(ms/1e3), 100*ms/t.excess, label(e.Leg))
		}
		h.Facts = append(h.Facts, lost+".")
	}
	for i := range s.Legs {
		if l := &s.Legs[i]; e.Leg != "" && l.Name == e.Leg {
			h.Facts = append(h.Facts, fmt.Sprintf("%s goes to %s over %s.", label(l.Name), peerText(l.Peer), cmp.Or(label(l.Device), "an unknown device")))
		}
	}
	if t.detail != "" {
		h.Facts = append(h.Facts, "Evidence: "+sentence(t.detail))
	}
	return h
}

// legHeadlines tells of legs that work, and not as they should.
func legHeadlines(s *event.Snapshot, reason func(*event.Leg) string) []board.Headline {
	var fallen, stuck, missing []*event.Leg
	clients := 0
	for i := range s.Legs {
		l := &s.Legs[i]
		if l.Role == event.RoleClient {
			clients++
		}
		switch {
		case l.Transport == event.TransportFallback:
			fallen = append(fallen, l)
		case l.Transport == event.TransportStalled || l.Transport == event.TransportQueued:
			stuck = append(stuck, l)
		case l.Expected == "rdma" && l.Transport != event.TransportRDMA && legLevel(l) != board.Bad:
			missing = append(missing, l)
		}
	}
	var out []board.Headline
	for _, kind := range []struct {
		legs          []*event.Leg
		text, runbook string
	}{
		{fallen, fmt.Sprintf("%d of %d legs run over TCP although RDMA is there: %s", len(fallen), clients, names(fallen)), "GrayfailLegFallback"},
		{stuck, "Nothing moves on " + names(stuck), "GrayfailLegStuck"},
		{missing, "RDMA is expected and not used: " + names(missing), "GrayfailLegNotRDMA"},
	} {
		if len(kind.legs) == 0 {
			continue
		}
		h := board.Headline{Level: board.Warn, Text: kind.text, Runbook: kind.runbook}
		for i, l := range kind.legs {
			if i == boardHeadlines {
				h.Facts = append(h.Facts, fmt.Sprintf("%d more: see the table of legs.", len(kind.legs)-i))
				break
			}
			if why := reason(l); why != "" {
				h.Facts = append(h.Facts, fmt.Sprintf("%s: %s.", label(l.Name), sentence(why)))
			}
		}
		out = append(out, h)
	}
	return out
}

func names(legs []*event.Leg) string {
	var out []string
	for i, l := range legs {
		if i == boardHeadlines {
			out = append(out, fmt.Sprintf("%d more", len(legs)-i))
			break
		}
		out = append(out, label(l.Name))
	}
	return strings.Join(out, ", ")
}
