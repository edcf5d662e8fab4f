package engine

import (
	"math/bits"

	"grayfail/event"
)

// Ending is how a call ended on the wire.
type Ending uint8

const (
	EndedClean   Ending = iota // the answer was read to its end
	EndedCut                   // the upstream broke off, or never answered
	EndedTimeout               // our time limit
	EndedClient                // the client left
)

// outcome judges the engine, not the wire: an answer that was whole before
// the client left or the connection broke is ok (clients may leave at
// [DONE]), one that reports an error is an error whatever its status, and a
// stream that stops without its last chunk is one too.
func (o *Observer) outcome(ending Ending) event.Outcome {
	switch {
	case o.failed || o.status >= 400:
		return event.OutcomeError
	case o.whole():
		return event.OutcomeOK
	case ending == EndedTimeout:
		return event.OutcomeTimeout
	case ending == EndedClient:
		return event.OutcomeCanceled
	case ending == EndedCut:
		return event.OutcomeError
	case o.partial || o.format == formatOther || o.format == formatSniff:
		return event.OutcomeOK // ended well as far as can be seen
	case o.format == formatEvents && o.all > 0 && o.known == 0 && o.broken == 0 && o.scan.complete():
		return event.OutcomeOK // a shape unknown to us: no mark to miss
	case o.format == formatEvents && o.allEnded():
		return event.OutcomeOK // fewer choices than asked for: the engine's choice
	}
	return event.OutcomeError
}

// whole says that everything of the answer has passed.
func (o *Observer) whole() bool {
	if o.partial {
		return false
	}
	if o.marked || o.events.done {
		return true
	}
	switch o.format {
	case formatLines:
		return false
	case formatJSON:
		return o.scan.values > 0 && o.scan.complete()
	}
	return o.allEnded() && bits.OnesCount64(o.ended) >= o.request.choices()
}

// allEnded says that each choice seen has had its last chunk.
func (o *Observer) allEnded() bool { return o.begun != 0 && o.begun == o.ended }

// Choices is how many sequences the engine worked on for this call.
func (o *Observer) Choices() int {
	return max(1, bits.OnesCount64(o.begun), o.request.choices())
}
