package export

import (
	"cmp"
	"encoding/json"

	"grayfail/event"
)

// legJSON is one leg of /api/v1/legs and of `legs --json`.
type legJSON struct {
	Leg        string          `json:"leg"`
	Role       string          `json:"role"`
	Netns      string          `json:"netns"`
	Local      string          `json:"local"`
	Peer       string          `json:"peer"`
	Device     string          `json:"device"`
	RDMADevice string          `json:"rdma_device"`
	RDMAPort   int             `json:"rdma_port"` // 0 where there is none
	Transport  event.Transport `json:"transport"`
	Reason     string          `json:"reason"`
	Expected   string          `json:"expected"`
	Process    string          `json:"process"`
	PID        int             `json:"pid"`
	QueuePairs []queuePairJSON `json:"queue_pairs"`
	TCP        legTCPJSON      `json:"tcp"`
}

type queuePairJSON struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
	LQPN   uint32 `json:"lqpn"`
	RQPN   uint32 `json:"rqpn"`
	Type   string `json:"type"`
	State  string `json:"state"`
	PID    int    `json:"pid"`
}

type legTCPJSON struct {
	BytesAcked    uint64 `json:"bytes_acked"`
	BytesReceived uint64 `json:"bytes_received"`
	RTTMicros     int64  `json:"rtt_us"` // 0 where there is no reading
}

// LegsJSON gives {"legs":[...]} with a final newline, in the order of legs.
// Arrays are never null.
func LegsJSON(legs []event.Leg) []byte {
	doc := struct {
		Legs []legJSON `json:"legs"`
	}{make([]legJSON, 0, len(legs))}
	for i := range legs {
		l := &legs[i]
		doc.Legs = append(doc.Legs, legJSON{
			Leg: l.Name, Role: l.Role.String(), Netns: l.Netns,
			Local: addrText(l.Local), Peer: peerText(l.Peer), Device: l.Device,
			RDMADevice: l.RDMADevice, RDMAPort: l.RDMAPort,
			Transport: cmp.Or(l.Transport, event.TransportUnknown), Reason: l.Reason,
			Expected: cmp.Or(l.Expected, "auto"), Process: l.Process, PID: l.PID,
			QueuePairs: queuePairsJSON(l.QueuePairs),
			TCP:        legTCPJSON{l.BytesAcked, l.BytesReceived, l.RTT.Microseconds()},
		})
	}
	body, err := json.Marshal(doc)
	if err != nil {
		panic(err) // strings and whole numbers cannot fail
	}
	return append(body, '\n')
}

func queuePairsJSON(pairs []event.QueuePair) []queuePairJSON {
	out := make([]queuePairJSON, 0, len(pairs))
	for i := range pairs {
		q := &pairs[i]
		out = append(out, queuePairJSON{q.Device, q.Port, q.LQPN, q.RQPN, q.Type, q.State, q.PID})
	}
	return out
}
