package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"grayfail/event"
)

// maxJump is the longest pause between two records that is believed without
// looking on. A longer one (a night without requests, a first record) is
// believed unless most of the next records come before it: then the one record
// has a wrong time, and would move every other one into the past.
const maxJump = time.Hour

const (
	// witnesses is how many records after a jump are asked.
	witnesses = 16
	// maxAhead bounds what is read ahead, lines that are bad included.
	maxAhead = 4 * witnesses
)

// reader gives the records of one input in their order, without those whose
// time cannot be.
type reader struct {
	*scanner
	ahead []item // read, not given
	eof   bool
	atNS  int64 // latest time of those given
}

// item is one line: a record or an error.
type item struct {
	rec  event.Record
	err  error
	line int
	atNS int64
}

// next is as scanner.next.
func (r *reader) next() (event.Record, error) {
	if len(r.ahead) == 0 && !r.fetch() {
		return nil, io.EOF
	}
	x := r.ahead[0]
	r.ahead = r.ahead[:copy(r.ahead, r.ahead[1:])]
	if x.err != nil {
		return nil, x.err
	}
	if x.atNS > r.atNS {
		if x.atNS-r.atNS > int64(maxJump) && r.contradicted(x.atNS) {
			return nil, BadLine{r.name, x.line, fmt.Errorf("its time %s is more than %s after that of the records around it",
				time.Unix(0, x.atNS).UTC().Format(time.RFC3339), maxJump)}
		}
		r.atNS = x.atNS
	}
	return x.rec, nil
}

// fetch reads one line ahead.
func (r *reader) fetch() bool {
	if r.eof {
		return false
	}
	rec, err := r.scanner.next()
	if errors.Is(err, io.EOF) {
		r.eof = true
		return false
	}
	x := item{rec: rec, err: err, line: r.line}
	if err == nil {
		x.atNS = knownAt(rec)
	}
	r.ahead = append(r.ahead, x)
	return true
}

// contradicted says whether most of the next records are long before atNS.
func (r *reader) contradicted(atNS int64) bool {
	before, after := 0, 0
	for i := 0; i < maxAhead && before+after < witnesses && (i < len(r.ahead) || r.fetch()); i++ {
		switch x := &r.ahead[i]; {
		case x.err != nil:
		case atNS-x.atNS > int64(maxJump):
			before++
		default:
			after++
		}
	}
	return before > after
}

// knownAt is when the program could have known the record at the earliest.
func knownAt(rec event.Record) int64 {
	switch x := rec.(type) {
	case *event.Request:
		return x.EndNS
	case *event.Exchange:
		// Half of what fits is the year 2116: a sum does not overflow.
		return min(x.SendNS, math.MaxInt64/2) + int64(x.Duration)
	case *event.Retransmit:
		return x.TimeNS
	case *event.Qdisc:
		return x.TimeNS
	case *event.LegChange:
		return x.TimeNS
	case *event.RDMAStep:
		return x.TimeNS
	case *event.Connection:
		return x.EndNS
	}
	return 0
}
