package detector

import (
	"maps"
	"slices"
)

// ledger splits a slow phase's excess time over the legs; ns. The remainder is
// local: legs + local = excess, by construction.
type ledger struct {
	excess, local float64
	terms         []term // largest first
	// known is false when accepted requests have shown no exchanges: then
	// nothing can be said about where the time went.
	known bool
	// localBase is what an accepted request of this size spends on no leg.
	localBase float64
}

// term is one leg's part.
type term struct {
	leg *leg
	// excess is what the leg took beyond base, its reference for this many
	// tokens.
	excess, base float64
	turns        int
}

// share of the excess that is on the leg.
func (l *ledger) share(t *term) float64 {
	if l.excess <= 0 {
		return 0
	}
	return t.excess / l.excess
}

// settle makes the ledger of a phase that took v.seconds instead of
// tokens/baseline.
func settle(v *phaseView, baseline float64, busy []legBusy, refs *legReferences) ledger {
	expected := v.tokens / baseline * 1e9
	l := ledger{excess: v.seconds*1e9 - expected, known: refs.requests > 0}
	spent := make(map[*leg]term, len(busy)+len(refs.legs))
	for _, b := range busy {
		spent[b.leg] = term{leg: b.leg, excess: b.ns, turns: b.turns}
	}
	l.localBase = expected
	for i := range refs.legs {
		leg := refs.legs[i].leg
		t := spent[leg]
		t.leg = leg
		t.base = refs.perToken(leg) * v.tokens
		t.excess -= t.base
		spent[leg] = t
		l.localBase -= t.base
	}
	l.terms = slices.SortedFunc(maps.Values(spent), func(a, b term) int {
		switch {
		case a.excess > b.excess:
			return -1
		case a.excess < b.excess:
			return 1
		case a.leg.name < b.leg.name:
			return -1
		}
		return 1
	})
	l.local = l.excess
	for i := range l.terms {
		l.local -= l.terms[i].excess
	}
	return l
}

// inMS writes the ledger in milliseconds so that the parts still add up to
// the whole after rounding.
func (l *ledger) inMS() (excess, local float64, legs map[string]float64) {
	const ms = 1e6
	excess = l.excess / ms
	legs = make(map[string]float64, len(l.terms))
	local = excess
	for i := range l.terms {
		x := l.terms[i].excess / ms
		legs[l.terms[i].leg.name] = x
		local -= x
	}
	return excess, local, legs
}
