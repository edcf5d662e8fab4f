package main

// The program's definition of an episode: it opens at openSlow slow verdicts
// of openWithin, and closes after closeAfter in a row that are not slow.
const (
	openSlow, openWithin, closeAfter = 3, 10, 10
)

// episodes finds them among n requests, whatever calls a request slow.
func episodes(n int, decided, slow func(i int) bool) (out []claim) {
	var serials, positions []int // of the slow ones that may open
	serial, calm, open := 0, 0, false
	for i := range n {
		if !decided(i) {
			continue
		}
		serial++
		if !slow(i) {
			if calm++; calm >= closeAfter {
				open = false
			}
			continue
		}
		calm = 0
		if open {
			out[len(out)-1].last = i
			continue
		}
		serials, positions = append(serials, serial), append(positions, i)
		for serials[0]+openWithin <= serial {
			serials, positions = serials[1:], positions[1:]
		}
		if len(serials) >= openSlow {
			out = append(out, claim{first: positions[0], last: i, judged: i + 1})
			open, serials, positions = true, nil, nil
		}
	}
	return out
}
