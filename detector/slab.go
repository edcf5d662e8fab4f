package detector

import "grayfail/event"

// slab hands out memory for rows in blocks, so that judging a request does not
// allocate: a block belongs to the rows cut from it and goes with the last.
type slab struct {
	rowBlock   []event.Row
	floatBlock []float64
}

const slabRows = 256

// rows returns an empty slice with room for n.
func (s *slab) rows(n int) []event.Row {
	if cap(s.rowBlock)-len(s.rowBlock) < n {
		s.rowBlock = make([]event.Row, 0, max(n, slabRows))
	}
	at := len(s.rowBlock)
	s.rowBlock = s.rowBlock[:at+n]
	return s.rowBlock[at : at : at+n]
}

// float returns a pointer to x that nobody else writes to.
func (s *slab) float(x float64) *float64 {
	if len(s.floatBlock) == cap(s.floatBlock) {
		s.floatBlock = make([]float64, 0, slabRows)
	}
	s.floatBlock = append(s.floatBlock, x)
	return &s.floatBlock[len(s.floatBlock)-1]
}
