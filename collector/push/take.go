package push

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"grayfail/event"
)

// take reads a body to its end, or to what ends it early.
func (h *Handler) take(body io.Reader) (int, answer) {
	var a answer
	records := newRecords(body, h.config.MaxLine)
	for {
		line, number, err := records.next()
		switch {
		case err == nil:
			err = h.record(line, &a)
		case errors.Is(err, io.EOF):
			return h.close(a)
		}
		var tooLarge *http.MaxBytesError
		switch {
		case err == nil:
			continue
		case errors.Is(err, errLimited):
			h.rateLimited.Add(1)
			a.fail(number, err)
			return http.StatusTooManyRequests, a
		case errors.As(err, &tooLarge):
			h.tooLarge.Add(1)
			a.fail(number, fmt.Errorf("the body is larger than %d bytes: send the rest in another request", tooLarge.Limit))
			return http.StatusRequestEntityTooLarge, a
		case errors.Is(err, errBroken):
			a.fail(number, err)
			return http.StatusBadRequest, a
		}
		h.bad.Add(1)
		a.fail(number, err)
	}
}

// close answers a body that was read to its end.
func (h *Handler) close(a answer) (int, answer) {
	if a.Accepted+a.Duplicates+len(a.Errors) == 0 {
		a.fail(1, errors.New("the body has no record: send one JSON object, or one on each line"))
	}
	if len(a.Errors) > 0 {
		return http.StatusBadRequest, a
	}
	return http.StatusAccepted, a
}

// record takes one record.
func (h *Handler) record(line []byte, a *answer) error {
	now := h.hooks.Now()
	if !h.limit.AllowN(now, 1) {
		return errLimited
	}
	if line[0] == '[' {
		return errors.New("a JSON array is not accepted: send one object, or one object on each line")
	}
	r, err := event.ParseRequest(line)
	if err != nil {
		return err
	}
	id := r.ID
	if err := complete(r, now); err != nil {
		return err
	}
	if id != "" && h.recent.repeated(id, now) {
		h.duplicates.Add(1)
		a.Duplicates++
		return nil
	}
	h.accepted.Add(1)
	a.Accepted++
	h.hooks.Emit(*r)
	return nil
}

// Times that a record may have. Old ones are taken: batches are pushed late.
const (
	maxAhead = time.Hour
	// tooOld is 2000-01-01: before it, some other unit was taken for
	// nanoseconds.
	tooOld = int64(946_684_800_000_000_000)
)

// complete sets the defaults, checks the times and makes names safe.
func complete(r *event.Request, now time.Time) error {
	for _, f := range []struct {
		name string
		ns   int64
	}{{"start", r.StartNS}, {"first_token", r.FirstTokenNS}, {"end", r.EndNS}} {
		switch {
		case f.ns == 0:
		case f.ns > now.Add(maxAhead).UnixNano():
			return &event.FieldError{Field: f.name, Reason: fmt.Sprintf("is more than %s in the future: are the clocks in step?", maxAhead)}
		case f.ns < tooOld:
			return &event.FieldError{Field: f.name, Reason: "is before the year 2000: *_ns fields are Unix time in nanoseconds"}
		}
	}
	if r.EndNS == 0 {
		// Clocks may differ a little: the end is not before what came first.
		r.EndNS = max(now.UnixNano(), r.StartNS, r.FirstTokenNS)
	}
	return name(r)
}
