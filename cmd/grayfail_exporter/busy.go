package main

import (
	"time"

	"grayfail/event"
)

// busy knows for how long requests have been in flight without a break that a
// look has seen. The table of legs asks it at each of its updates.
type busy struct {
	list    func() []event.InFlight
	sinceNS int64
}

func (b *busy) since(nowNS int64) time.Duration {
	total := 0
	for _, f := range b.list() {
		total += f.Requests
	}
	switch {
	case total == 0:
		b.sinceNS = 0
		return 0
	case b.sinceNS == 0 || nowNS < b.sinceNS:
		b.sinceNS = nowNS
	}
	return time.Duration(nowNS - b.sinceNS)
}

// inFlight lists what the sources are serving now.
func (s *server) inFlight() []event.InFlight {
	return append(s.proxies.inFlight(), s.logs.inFlight()...)
}
