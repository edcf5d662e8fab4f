package event

import (
	"encoding/json"
	"fmt"
	"slices"
)

// RDMAMeaning is what a hardware counter of an RDMA port counts, whatever its
// driver calls it. A requester is the side that sends a request, a responder
// the one that gets it; either end of a leg is both.
type RDMAMeaning string

// Meanings.
const (
	// RDMARetransmission: the requester sent something again.
	RDMARetransmission RDMAMeaning = "retransmission"
	// RDMATimeout: the requester waited in vain for an acknowledgement.
	RDMATimeout RDMAMeaning = "timeout"
	// RDMASequenceNAK: the requester was told, or saw, that something is missing.
	RDMASequenceNAK RDMAMeaning = "sequence_nak"
	// RDMAOutOfSequence: the responder got a packet before one that is missing.
	RDMAOutOfSequence RDMAMeaning = "out_of_sequence"
	// RDMADuplicate: the responder got something again that it had.
	RDMADuplicate RDMAMeaning = "duplicate"
	// RDMARNRReceived: the peer was not ready to receive.
	RDMARNRReceived RDMAMeaning = "rnr_received"
	// RDMARNRSent: the process here had no buffer for what came.
	RDMARNRSent RDMAMeaning = "rnr_sent"
	// RDMARetryExceeded: the requester gave up, and the queue pair is of no more
	// use.
	RDMARetryExceeded RDMAMeaning = "retry_exceeded"
	// RDMACongestion: packets were marked, or the sender was told to slow down.
	RDMACongestion RDMAMeaning = "congestion"
	// RDMALinkDown: the link went down.
	RDMALinkDown RDMAMeaning = "link_down"
)

// RDMAMeanings lists every meaning.
var RDMAMeanings = []RDMAMeaning{
	RDMARetransmission, RDMATimeout, RDMASequenceNAK, RDMAOutOfSequence, RDMADuplicate,
	RDMARNRReceived, RDMARNRSent, RDMARetryExceeded, RDMACongestion, RDMALinkDown,
}

// Retries says whether the fast path had to do something again, or gave up.
func (m RDMAMeaning) Retries() bool {
	switch m {
	case RDMARetransmission, RDMATimeout, RDMASequenceNAK, RDMAOutOfSequence, RDMADuplicate, RDMARetryExceeded:
		return true
	}
	return false
}

// RDMAStep is how far one hardware counter of a port moved between two
// readings.
type RDMAStep struct {
	FromNS, TimeNS int64
	Device         string
	Port           int    // counted from 1
	Event          string // the driver's name: "out_of_sequence"
	Meaning        RDMAMeaning
	Count          uint64
}

func (*RDMAStep) record() {}

type rdmaStepJSON struct {
	Type    string      `json:"type"`
	TimeNS  int64       `json:"time_ns"`
	FromNS  int64       `json:"from_ns"`
	Device  string      `json:"device"`
	Port    int         `json:"port"`
	Event   string      `json:"event"`
	Meaning RDMAMeaning `json:"meaning"`
	Count   uint64      `json:"count"`
}

// maxRDMAPort bounds the number of a port; cards have 1 or 2.
const maxRDMAPort = 255

func parseRDMAStep(line []byte) (*RDMAStep, error) {
	var j rdmaStepJSON
	if err := unmarshal(line, &j); err != nil {
		return nil, err
	}
	switch {
	case j.Device == "":
		return nil, &FieldError{"device", "is needed"}
	case j.TimeNS <= 0:
		return nil, &FieldError{"time_ns", "is needed: Unix nanoseconds"}
	case j.FromNS <= 0 || j.FromNS > j.TimeNS || j.TimeNS-j.FromNS > maxSpan:
		return nil, &FieldError{"from_ns", fmt.Sprintf("%d is not the reading before time_ns", j.FromNS)}
	case j.Port < 1 || j.Port > maxRDMAPort:
		return nil, &FieldError{"port", fmt.Sprintf("%d is outside 1 to %d", j.Port, maxRDMAPort)}
	case j.Event == "":
		return nil, &FieldError{"event", "is needed: the driver's name of the counter"}
	case !slices.Contains(RDMAMeanings, j.Meaning):
		return nil, &FieldError{"meaning", fmt.Sprintf("unknown value %q: allowed are %v", j.Meaning, RDMAMeanings)}
	}
	return &RDMAStep{j.FromNS, j.TimeNS, j.Device, j.Port, j.Event, j.Meaning, j.Count}, nil
}

// MarshalJSON writes the record of type rdma.
func (s *RDMAStep) MarshalJSON() ([]byte, error) {
	return json.Marshal(rdmaStepJSON{"rdma", s.TimeNS, s.FromNS, s.Device, s.Port, s.Event, s.Meaning, s.Count})
}
