package event

import (
	"encoding/json"
	"time"
)

// HTTPStage is one span of an HTTP call, seen from the client's side.
type HTTPStage string

// The stages, in the order in which they happen.
const (
	HTTPStageDNS       HTTPStage = "dns"        // looking the name up; an address needs none
	HTTPStageConnect   HTTPStage = "connect"    // from dialing the first address until any has answered
	HTTPStageTLS       HTTPStage = "tls"        // handshake
	HTTPStageWrite     HTTPStage = "write"      // connection ready until header and body are handed to it
	HTTPStageFirstByte HTTPStage = "first_byte" // from there to the first byte of the answer
	HTTPStageRead      HTTPStage = "read"       // from there to the answer's end
)

// HTTPStageNames lists every stage.
var HTTPStageNames = []HTTPStage{
	HTTPStageDNS, HTTPStageConnect, HTTPStageTLS, HTTPStageWrite, HTTPStageFirstByte, HTTPStageRead,
}

// HTTPStages is where the time of one HTTP call to an upstream went.
type HTTPStages struct {
	Upstream string // host:port as configured, the port always given
	// Durations has the stages that came to their end. One that did not
	// happen, failed or was broken off is absent, never zero. They need not
	// add up to the call: what waited for the caller is in none of them.
	Durations map[HTTPStage]time.Duration
	// Reused says that the connection was there before the call: no dns,
	// connect, tls.
	Reused bool
}

// MarshalJSON writes milliseconds by stage, and whether the connection was
// there before: {"reused":true,"stages_ms":{"write":0.1,"first_byte":40,"read":900}}.
func (s *HTTPStages) MarshalJSON() ([]byte, error) {
	ms := make(map[HTTPStage]float64, len(s.Durations))
	for stage, d := range s.Durations {
		ms[stage] = float64(d) / 1e6
	}
	return json.Marshal(struct {
		Reused bool                  `json:"reused"`
		MS     map[HTTPStage]float64 `json:"stages_ms"`
	}{s.Reused, ms})
}
