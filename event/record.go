package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// Record is one line of a recording: *Request, *Exchange, *Retransmit,
// *Qdisc, *LegChange, *RDMAStep or *Connection.
type Record interface{ record() }

func (*Request) record()    {}
func (*Exchange) record()   {}
func (*Retransmit) record() {}
func (*Qdisc) record()      {}
func (*LegChange) record()  {}

// FieldError names the field of a record that cannot be used.
type FieldError struct {
	Field  string // JSON name
	Reason string // what is wrong and what is allowed
}

func (e *FieldError) Error() string { return fmt.Sprintf("field %q: %s", e.Field, e.Reason) }

// ParseRecord reads one JSON line. Unknown fields are ignored; an unknown
// type, a field of the wrong type or a value outside its range is an error
// that names the field. For a request, end defaults to 0: the caller knows
// when it arrived.
func ParseRecord(line []byte) (Record, error) {
	var head struct {
		Type *string `json:"type"`
	}
	if err := unmarshal(line, &head); err != nil {
		return nil, err
	}
	kind := "request"
	if head.Type != nil {
		kind = *head.Type
	}
	switch kind {
	case "request":
		return parseRequest(line)
	case "exchange":
		return parseExchange(line)
	case "retransmit":
		return parseRetransmit(line)
	case "qdisc":
		return parseQdisc(line)
	case "leg":
		return parseLegChange(line)
	case "rdma":
		return parseRDMAStep(line)
	case "connection":
		return parseConnection(line)
	}
	return nil, &FieldError{"type", fmt.Sprintf("unknown value %q: allowed are request, exchange, retransmit, qdisc, leg, rdma, connection", kind)}
}

// ParseRequest reads one request record; another type is an error.
func ParseRequest(line []byte) (*Request, error) {
	rec, err := ParseRecord(line)
	if err != nil {
		return nil, err
	}
	req, ok := rec.(*Request)
	if !ok {
		return nil, &FieldError{"type", "only request records are accepted here"}
	}
	return req, nil
}

// unmarshal turns encoding/json's errors into ours: the field, not a Go type.
func unmarshal(line []byte, into any) error {
	if trimmed := bytes.TrimLeft(line, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("not a JSON object")
	}
	err := json.Unmarshal(line, into)
	var typeErr *json.UnmarshalTypeError
	if errors.As(err, &typeErr) {
		return &FieldError{typeErr.Field, fmt.Sprintf("cannot read JSON %s as %s", typeErr.Value, typeErr.Type)}
	}
	return err
}

// plausible rejects rates no engine has and JSON cannot mean.
func plausible(field string, rate float64) error {
	if rate < 0 || rate > 1e9 || math.IsNaN(rate) {
		return &FieldError{field, fmt.Sprintf("%g is outside 0 to 1e9 tokens per second", rate)}
	}
	return nil
}

func notNegative[T int | int64](field string, v T) error {
	if v < 0 {
		return &FieldError{field, fmt.Sprintf("%d is negative", v)}
	}
	return nil
}

// stamp takes RFC 3339 text or, where that is absent, Unix nanoseconds.
func stamp(field, text string, ns int64) (int64, error) {
	if text == "" {
		return ns, notNegative(field+"_ns", ns)
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, &FieldError{field, fmt.Sprintf("%q is not RFC 3339 with optional nanoseconds", text)}
	}
	if t.Year() < 1970 || t.Year() > 2261 {
		return 0, &FieldError{field, fmt.Sprintf("%q is outside the years 1970 to 2261", text)}
	}
	return t.UnixNano(), nil
}
