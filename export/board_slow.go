package export

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"grayfail/event"
	"grayfail/export/board"
)

// How many slow requests and episodes the page shows; the API has all.
const (
	boardRows = 15
	boardOpen = 24
	boardPast = 12
)

func boardSlow(rows []event.Row, nowNS int64) []board.Request {
	var out []board.Request
	for i := range rows {
		r := &rows[i]
		if r.Verdict != event.VerdictSlow {
			continue
		}
		if len(out) == boardRows {
			break
		}
		var t tally
		t.add(r)
		out = append(out, board.Request{
			Time: moment(r.EndNS, nowNS), Source: label(r.Source), Model: label(r.Model), Phase: string(r.Phase), ID: label(r.ID),
			Rate: rateText(r.Rate), Baseline: rateText(r.Baseline), Blame: boardBlame(r.Cause, r.Leg),
			Evidence: sentence(r.Detail), HTTP: httpText(r.HTTP), Lost: seconds(r.ExcessMS / 1e3),
			Ledger: t.shares(r.Leg),
		})
	}
	return out
}

// boardBlame leads with the leg, and says so where there is none.
func boardBlame(c event.Cause, leg string) string {
	switch {
	case leg != "":
		return fmt.Sprintf("%s: %s", label(leg), label(string(c)))
	case c == event.CauseLocal:
		return "this host: local"
	case c == event.CauseNone:
		return "not judged yet"
	}
	return "no leg: " + label(string(c))
}

// httpText says in which stage of the call the time went.
func httpText(h *event.HTTPStages) string {
	if h == nil {
		return ""
	}
	var stages []string
	for _, stage := range event.HTTPStageNames {
		if d, ok := h.Durations[stage]; ok {
			stages = append(stages, fmt.Sprintf("%s %s", stage, seconds(d.Seconds())))
		}
	}
	if len(stages) == 0 {
		return ""
	}
	connection := "new connection"
	if h.Reused {
		connection = "connection reused"
	}
	return fmt.Sprintf("HTTP to %s: %s (%s)", label(h.Upstream), strings.Join(stages, ", "), connection)
}

// tally sums what slow rows lost, in milliseconds.
type tally struct {
	rows          int
	excess, local float64
	legs          map[string]float64
	detail        string // of the newest
	newestNS      int64
}

func (t *tally) add(r *event.Row) {
	t.rows++
	t.excess += r.ExcessMS
	t.local += r.LocalMS
	if t.legs == nil {
		t.legs = make(map[string]float64, len(r.LegsMS))
	}
	for leg, ms := range r.LegsMS {
		t.legs[leg] += ms
	}
	if r.EndNS >= t.newestNS {
		t.newestNS, t.detail = r.EndNS, r.Detail
	}
}

// shares lists the legs, the one that lost most first, then what no leg has.
// What rounds to nothing is left out, but for the leg that is named.
func (t *tally) shares(named string) []board.Share {
	if t.excess <= 0 {
		return nil
	}
	share := func(name string, ms float64) board.Share {
		return board.Share{Name: name, Seconds: seconds(ms / 1e3), Percent: 100 * ms / t.excess}
	}
	out := make([]board.Share, 0, len(t.legs)+1)
	for leg, ms := range t.legs {
		s := share(label(leg), ms)
		s.Named = named != "" && leg == named
		if s.Named || math.Abs(s.Percent) >= 0.5 {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(x, y board.Share) int {
		return cmp.Or(cmp.Compare(y.Percent, x.Percent), cmp.Compare(x.Name, y.Name))
	})
	local := share("on no leg", t.local)
	local.Local = true
	if math.Abs(local.Percent) >= 0.5 {
		out = append(out, local)
	}
	return out
}

// of says whether a row belongs to an episode.
func of(e *event.Episode, r *event.Row) bool {
	return r.Verdict == event.VerdictSlow && r.Source == e.Source && r.Model == e.Model && r.Phase == e.Phase &&
		r.EndNS >= e.StartNS && (e.EndNS == 0 || r.EndNS <= e.EndNS)
}

func tallyOf(e *event.Episode, rows []event.Row) tally {
	var t tally
	for i := range rows {
		if of(e, &rows[i]) {
			t.add(&rows[i])
		}
	}
	return t
}

func boardEpisode(e *event.Episode, rows []event.Row, nowNS int64) board.Episode {
	t := tallyOf(e, rows)
	out := board.Episode{
		Level: board.Bad, Since: moment(e.StartNS, nowNS), Until: moment(e.EndNS, nowNS), Lasts: lasts(e.StartNS, cmp.Or(e.EndNS, nowNS)),
		Model: label(e.Model), Phase: string(e.Phase), Blame: boardBlame(e.Cause, e.Leg),
		Slow: fmt.Sprintf("%d of %d", e.Slow, e.Requests), Evidence: sentence(t.detail), Ledger: t.shares(e.Leg),
	}
	if e.EndNS != 0 {
		out.Level = board.Wait
	}
	if t.rows > 0 {
		out.Lost = seconds(t.excess / 1e3)
		if t.rows < e.Slow {
			out.Lost += fmt.Sprintf(" by the newest %d", t.rows)
		}
	}
	return out
}

// lasts rounds to what matters: 42s, 3m20s, 5h12m.
func lasts(fromNS, toNS int64) string {
	d := max(time.Duration(toNS-fromNS), 0)
	if d >= time.Hour {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}
