package main

import (
	"slices"
	"sort"

	"grayfail/event"
	"grayfail/scripts/eval/scenario"
)

// says puts the rows in the order of the truth.
func (j *judged) says(t *scenario.Timeline) []said {
	byID := make(map[string]*event.Row, len(j.rows))
	for i := range j.rows {
		byID[j.rows[i].ID] = &j.rows[i]
	}
	out := make([]said, len(t.Truths))
	for i := range t.Truths {
		if r := byID[t.Truths[i].ID]; r != nil {
			out[i] = said{r.Verdict != event.VerdictUnknown, r.Verdict == event.VerdictSlow, r.Cause, r.Leg}
		}
	}
	return out
}

// claims puts the reported episodes in that order too.
func (j *judged) claims(t *scenario.Timeline) (out []claim) {
	position := make(map[string]int, len(t.Truths))
	for i := range t.Truths {
		position[t.Truths[i].ID] = i
	}
	for _, e := range j.episodes {
		c := claim{first: len(t.Truths), cause: e.Cause, leg: e.Leg}
		for _, id := range e.RequestIDs {
			c.first, c.last = min(c.first, position[id]), max(c.last, position[id])
		}
		for _, o := range j.openings {
			if o.phase == event.PhaseDecode && o.startNS == e.StartNS {
				c.openedNS = o.atNS
			}
		}
		c.judged = sort.Search(len(t.Truths), func(i int) bool { return t.Truths[i].EndNS > c.openedNS-holdNS })
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b claim) int { return a.first - b.first })
	return out
}

// differ counts rows that are not the same.
func differ(a, b []event.Row) int {
	n := max(len(a), len(b)) - min(len(a), len(b))
	for i := range min(len(a), len(b)) {
		x, y := &a[i], &b[i]
		if x.ID != y.ID || x.Verdict != y.Verdict || x.Cause != y.Cause || x.Leg != y.Leg || x.Detail != y.Detail || x.ExcessMS != y.ExcessMS {
			n++
		}
	}
	return n
}
