package event

import (
	"encoding/json"
	"fmt"
)

// connectionJSON is the end of a connection, as a recording holds it.
type connectionJSON struct {
	Type        string `json:"type"`
	TimeNS      int64  `json:"time_ns"` // when it ended
	Leg         string `json:"leg"`
	StartNS     int64  `json:"start_ns,omitempty"`
	Established bool   `json:"established"`
	Role        string `json:"role,omitempty"` // client where not given
}

func (*Connection) record() {}

func parseConnection(line []byte) (*Connection, error) {
	var j connectionJSON
	if err := unmarshal(line, &j); err != nil {
		return nil, err
	}
	if err := needLegTime(j.Leg, j.TimeNS); err != nil {
		return nil, err
	}
	if j.StartNS < 0 || j.StartNS > j.TimeNS {
		return nil, &FieldError{"start_ns", fmt.Sprintf("%d is outside 0 to time_ns", j.StartNS)}
	}
	c := &Connection{Leg: j.Leg, StartNS: j.StartNS, EndNS: j.TimeNS, Established: j.Established}
	switch j.Role {
	case "", RoleClient.String():
	case RoleServer.String():
		c.Flow.Role = RoleServer
	default:
		return nil, &FieldError{"role", fmt.Sprintf("unknown value %q: allowed are client, server", j.Role)}
	}
	return c, nil
}

// MarshalJSON writes the connection record.
func (c *Connection) MarshalJSON() ([]byte, error) {
	j := connectionJSON{Type: "connection", TimeNS: c.EndNS, Leg: c.Leg, StartNS: min(c.StartNS, c.EndNS), Established: c.Established}
	if c.Flow.Role == RoleServer {
		j.Role = RoleServer.String()
	}
	return json.Marshal(j)
}
