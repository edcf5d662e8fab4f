package llamalog

// A moment is when a line was written: in Unix time as far as can be told, and
// by the clock of the flight.
type moment struct {
	atNS     int64
	flightNS int64
}

// A flight counts the tasks that slots work on, and how many were over any
// span. Its clock is the engine's own where lines carry it, so that it runs
// right in a log read long after it was written.
type flight struct {
	N int `json:"n"`
	// Area is the integral of N over time in task-nanoseconds; it may wrap,
	// only differences are used.
	Area uint64 `json:"area"`
	AtNS int64  `json:"at"`
}

// advance brings Area to atNS. Lines may come out of order: time never goes
// back.
func (f *flight) advance(atNS int64) {
	if atNS > f.AtNS {
		if f.AtNS != 0 {
			f.Area += uint64(atNS-f.AtNS) * uint64(f.N)
		}
		f.AtNS = atNS
	}
}

// enter counts a task in and returns the area at that time.
func (f *flight) enter(atNS int64) uint64 {
	f.advance(atNS)
	f.N++
	return f.Area
}

// leave counts a task out and returns how many there were while it ran, it
// included, weighted by time; 0 when no time has passed on its clock.
func (f *flight) leave(sinceNS int64, area uint64, atNS int64) float64 {
	f.advance(atNS)
	f.N = max(0, f.N-1)
	if f.AtNS <= sinceNS {
		return 0
	}
	return max(1, float64(f.Area-area)/float64(f.AtNS-sinceNS))
}
