package event

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

type exchangeJSON struct {
	Type         string `json:"type"`
	TimeNS       int64  `json:"time_ns"`
	Leg          string `json:"leg"`
	Duration     int64  `json:"duration_ns"`
	FirstByte    int64  `json:"first_byte_ns"`
	Ack          int64  `json:"ack_ns"`
	Stall        int64  `json:"stall_ns"`
	RequestBytes uint64 `json:"request_bytes"`
	ReplyBytes   uint64 `json:"bytes"`
	RTT          int64  `json:"rtt_us"`
	MinRTT       int64  `json:"min_rtt_us"`
	OutOfOrder   uint32 `json:"out_of_order"`
	Retransmits  uint32 `json:"retransmits"`
	DSACKs       uint32 `json:"dsacks"`
	Socket       uint64 `json:"socket,omitempty"`
	Open         bool   `json:"open,omitempty"`
}

// maxSpan bounds a span in a recording: beyond a year it is not a span.
const maxSpan = int64(365 * 24 * time.Hour)

func parseExchange(line []byte) (*Exchange, error) {
	var j exchangeJSON
	if err := unmarshal(line, &j); err != nil {
		return nil, err
	}
	if err := needLegTime(j.Leg, j.TimeNS); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"duration_ns", j.Duration}, {"first_byte_ns", j.FirstByte}, {"ack_ns", j.Ack},
		{"stall_ns", j.Stall}, {"rtt_us", j.RTT}, {"min_rtt_us", j.MinRTT},
	} {
		if f.v < 0 || f.v > maxSpan {
			return nil, &FieldError{f.name, fmt.Sprintf("%d is outside 0 to one year", f.v)}
		}
	}
	return &Exchange{
		Leg: j.Leg, SendNS: j.TimeNS, Duration: time.Duration(j.Duration),
		FirstByte: time.Duration(j.FirstByte), Ack: time.Duration(j.Ack), Stall: time.Duration(j.Stall),
		RequestBytes: j.RequestBytes, ReplyBytes: j.ReplyBytes,
		RTT:        min(time.Duration(j.RTT), time.Duration(maxSpan)/time.Microsecond) * time.Microsecond,
		MinRTT:     min(time.Duration(j.MinRTT), time.Duration(maxSpan)/time.Microsecond) * time.Microsecond,
		OutOfOrder: j.OutOfOrder, Retransmits: j.Retransmits, DSACKs: j.DSACKs,
		Open: j.Open, Flow: Flow{Socket: j.Socket},
	}, nil
}

// MarshalJSON writes the exchange record. The socket is written so that open
// looks and parallel sockets of a leg stay told apart on replay.
func (e *Exchange) MarshalJSON() ([]byte, error) {
	return json.Marshal(exchangeJSON{
		Type: "exchange", TimeNS: e.SendNS, Leg: e.Leg, Duration: int64(e.Duration),
		FirstByte: int64(e.FirstByte), Ack: int64(e.Ack), Stall: int64(e.Stall),
		RequestBytes: e.RequestBytes, ReplyBytes: e.ReplyBytes,
		RTT: e.RTT.Microseconds(), MinRTT: e.MinRTT.Microseconds(),
		OutOfOrder: e.OutOfOrder, Retransmits: e.Retransmits, DSACKs: e.DSACKs,
		Socket: e.Flow.Socket, Open: e.Open,
	})
}

type retransmitJSON struct {
	Type   string         `json:"type"`
	TimeNS int64          `json:"time_ns"`
	Leg    string         `json:"leg"`
	Kind   RetransmitKind `json:"kind"`
	Side   Side           `json:"side"`
}

func parseRetransmit(line []byte) (*Retransmit, error) {
	var j retransmitJSON
	if err := unmarshal(line, &j); err != nil {
		return nil, err
	}
	if err := needLegTime(j.Leg, j.TimeNS); err != nil {
		return nil, err
	}
	if !slices.Contains(RetransmitKinds, j.Kind) {
		return nil, &FieldError{"kind", fmt.Sprintf("unknown value %q: allowed are %v", j.Kind, RetransmitKinds)}
	}
	if j.Side == "" {
		j.Side = SideCoordinator
	}
	if j.Side != SideCoordinator && j.Side != SideWorker {
		return nil, &FieldError{"side", fmt.Sprintf("unknown value %q: allowed are coordinator, worker", j.Side)}
	}
	return &Retransmit{Leg: j.Leg, TimeNS: j.TimeNS, Kind: j.Kind, Side: j.Side}, nil
}

// MarshalJSON writes the retransmit record.
func (r *Retransmit) MarshalJSON() ([]byte, error) {
	return json.Marshal(retransmitJSON{"retransmit", r.TimeNS, r.Leg, r.Kind, r.Side})
}

type qdiscJSON struct {
	Type    string `json:"type"`
	TimeNS  int64  `json:"time_ns"`
	Netns   string `json:"netns"`
	Device  string `json:"device"`
	Kind    string `json:"kind"`
	Handle  string `json:"handle"`
	Parent  string `json:"parent,omitempty"`
	Packets uint64 `json:"packets"`
	Drops   uint64 `json:"drops"`
}

func parseQdisc(line []byte) (*Qdisc, error) {
	var j qdiscJSON
	if err := unmarshal(line, &j); err != nil {
		return nil, err
	}
	if j.Device == "" {
		return nil, &FieldError{"device", "is needed"}
	}
	if j.TimeNS <= 0 {
		return nil, &FieldError{"time_ns", "is needed: Unix nanoseconds"}
	}
	return &Qdisc{
		TimeNS: j.TimeNS, Netns: j.Netns, Device: j.Device, Kind: j.Kind, Handle: j.Handle, Parent: j.Parent,
		Packets: j.Packets, Drops: j.Drops,
	}, nil
}

// MarshalJSON writes the qdisc record. Without its parent the children of a
// multiqueue root would be one queue on replay.
func (q *Qdisc) MarshalJSON() ([]byte, error) {
	return json.Marshal(qdiscJSON{"qdisc", q.TimeNS, q.Netns, q.Device, q.Kind, q.Handle, q.Parent, q.Packets, q.Drops})
}

type legJSON struct {
	Type      string    `json:"type"`
	TimeNS    int64     `json:"time_ns"`
	Leg       string    `json:"leg"`
	Transport Transport `json:"transport"`
	Reason    string    `json:"reason"`
	Netns     string    `json:"netns,omitempty"`
	Device    string    `json:"device,omitempty"`
	RDMADev   string    `json:"rdma_device,omitempty"`
	RDMAPort  int       `json:"rdma_port,omitempty"`
}

func parseLegChange(line []byte) (*LegChange, error) {
	var j legJSON
	if err := unmarshal(line, &j); err != nil {
		return nil, err
	}
	if err := needLegTime(j.Leg, j.TimeNS); err != nil {
		return nil, err
	}
	if !slices.Contains(Transports, j.Transport) {
		return nil, &FieldError{"transport", fmt.Sprintf("unknown value %q: allowed are %v", j.Transport, Transports)}
	}
	if j.RDMAPort < 0 || j.RDMAPort > maxRDMAPort {
		return nil, &FieldError{"rdma_port", fmt.Sprintf("%d is outside 0 to %d", j.RDMAPort, maxRDMAPort)}
	}
	return &LegChange{
		TimeNS: j.TimeNS, Leg: j.Leg, Transport: j.Transport, Reason: j.Reason,
		Netns: j.Netns, Device: j.Device, RDMADevice: j.RDMADev, RDMAPort: j.RDMAPort,
	}, nil
}

// MarshalJSON writes the leg record.
func (l *LegChange) MarshalJSON() ([]byte, error) {
	return json.Marshal(legJSON{"leg", l.TimeNS, l.Leg, l.Transport, l.Reason, l.Netns, l.Device, l.RDMADevice, l.RDMAPort})
}

func needLegTime(leg string, timeNS int64) error {
	if leg == "" {
		return &FieldError{"leg", "is needed"}
	}
	if timeNS <= 0 {
		return &FieldError{"time_ns", "is needed: Unix nanoseconds"}
	}
	return nil
}
