package llamalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// A snapshot is what a parser knows between two lines: numbers and names, no
// text of the log. With it another parser goes on where this one was.
type snapshot struct {
	CountFromNS int64              `json:"count_from_ns,omitempty"`
	BeganNS     int64              `json:"began_ns,omitempty"`
	Flight      flight             `json:"flight"`
	Streams     map[string]*stream `json:"streams"`
	// Inside names the buffers that were inside a line.
	Inside []string `json:"inside,omitempty"`
}

const rawBuffer = "raw"

// snapshot is valid until the parser is used again.
func (p *Parser) snapshot() snapshot {
	s := snapshot{CountFromNS: p.countFromNS, BeganNS: p.beganNS, Flight: p.flight, Streams: p.streams}
	if p.raw.skip {
		s.Inside = append(s.Inside, rawBuffer)
	}
	for name, lines := range p.inner {
		if lines.size > 0 || lines.skip {
			s.Inside = append(s.Inside, name)
		}
	}
	slices.Sort(s.Inside)
	return s
}

// pending is how many bytes of the log were taken that belong to a line not
// yet whole. A snapshot stands before them.
func (p *Parser) pending() int64 { return p.raw.size }

// dropLine forgets the line begun: the log goes on elsewhere.
func (p *Parser) dropLine() { p.raw.drop() }

// restore makes p go on from a snapshot. The error says what in it cannot be
// true; p is unchanged then.
func (p *Parser) restore(raw json.RawMessage) error {
	var s snapshot
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	for origin, st := range s.Streams {
		st.origin, st.now = origin, moment{s.BeganNS, s.Flight.AtNS}
		if st.Slots == nil {
			st.Slots = map[int64]*task{}
		}
	}
	p.countFromNS, p.beganNS, p.flight, p.streams = s.CountFromNS, s.BeganNS, s.Flight, s.Streams
	if p.streams == nil {
		p.streams = map[string]*stream{}
	}
	for _, name := range s.Inside {
		if name == rawBuffer {
			p.raw.skip = true
			continue
		}
		p.inner[name] = &lineBuffer{max: maxText, skip: true}
	}
	return nil
}

var errSnapshot = errors.New("impossible value")

// check refuses what no parser could have written: the rest of the code counts
// on it.
func (s *snapshot) check() error {
	if len(s.Streams) > maxStreams || len(s.Inside) > 8 {
		return fmt.Errorf("%w: %d streams, %d buffers", errSnapshot, len(s.Streams), len(s.Inside))
	}
	if s.CountFromNS < 0 || s.BeganNS < 0 || s.Flight.N < 0 || s.Flight.AtNS < 0 {
		return fmt.Errorf("%w: a negative time or count", errSnapshot)
	}
	for origin, st := range s.Streams {
		switch {
		case st == nil, len(origin) > 2*maxOrigin, len(st.Slots) > maxSlots, len(st.Open) > maxSlots,
			st.StartNS < 0, st.BaseNS < 0, st.SinceStartNS < 0, st.Run.FailedNS < 0, st.Run.Made < 0,
			!st.Run.Prompt.possible(), !st.Run.Generated.possible():
			return fmt.Errorf("%w: stream %q", errSnapshot, origin)
		}
		st.Model, st.Named = cleanModel([]byte(st.Model)), cleanModel([]byte(st.Named))
		for slot, t := range st.Slots {
			if t == nil || t.LaunchNS < 0 || t.FlightNS < 0 || t.EndNS < 0 || t.SoFar < 0 || t.Context < 0 || t.Context > maxTokens ||
				!(t.Concurrency >= 0 && t.Concurrency <= maxStreams*maxSlots) || !t.Prompt.possible() || !t.Generated.possible() {
				return fmt.Errorf("%w: stream %q slot %d", errSnapshot, origin, slot)
			}
		}
	}
	return nil
}

// possible: not there, or within what a line can say.
func (c *count) possible() bool {
	return c == nil || c.N >= 0 && c.N <= maxTokens && c.MS >= 0 && c.MS <= maxMS
}
