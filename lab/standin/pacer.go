package standin

import "time"

// maxDebt bounds how much lost time a pacer makes up: a process that was
// stopped for a second does not race through the next.
const maxDebt = 2 * time.Millisecond

// pacer sleeps exact times on average: what one sleep took too long (a timer
// fires late, on a busy machine by a millisecond) the next ones take less.
type pacer struct{ debt time.Duration }

func (p *pacer) work(d time.Duration) {
	start := time.Now()
	if want := d - p.debt; want > 0 {
		time.Sleep(want)
	}
	p.debt = min(maxDebt, p.debt+time.Since(start)-d)
}
