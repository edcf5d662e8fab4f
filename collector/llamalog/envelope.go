package llamalog

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// An envelope is one JSON object a line, as three programs write it:
//
//	{"log":"slot ...\n","stream":"stderr","time":"2026-11-30T12:00:00.1Z"}   Docker's json-file driver
//	{"type":"log","time":1426058,"level":"info","msg":"slot ...\n"}          llama-server --log-jsonl; time in us since its start
//	{"__REALTIME_TIMESTAMP":"1764504000000000","MESSAGE":"slot ..."}         journalctl -o json; us since 1970
type envelope struct {
	Log      *string         `json:"log"`
	Stream   string          `json:"stream"`
	Time     json.RawMessage `json:"time"`
	Type     string          `json:"type"`
	Msg      *string         `json:"msg"`
	Message  json.RawMessage `json:"MESSAGE"`
	Realtime string          `json:"__REALTIME_TIMESTAMP"`
}

// A payload is what an envelope holds: a piece of what the engine wrote, not
// always a whole line (Docker cuts at 16 KiB).
type payload struct {
	stream string
	text   []byte
	prefix prefix
}

// unwrap reads an envelope; ok is false when the line is none.
func unwrap(line []byte) (payload, bool) {
	if len(line) == 0 || line[0] != '{' {
		return payload{}, false
	}
	var e envelope
	if json.Unmarshal(line, &e) != nil {
		return payload{}, false
	}
	p := payload{prefix: prefix{sinceStartNS: -1}}
	switch {
	case e.Log != nil:
		p.stream, p.text = "docker-other", []byte(*e.Log)
		if e.Stream == "stdout" || e.Stream == "stderr" {
			p.stream = "docker-" + e.Stream
		}
		var text string
		if json.Unmarshal(e.Time, &text) == nil {
			if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.Year() >= 1970 && t.Year() < 2262 {
				p.prefix.wallNS = t.UnixNano()
			}
		}
	case e.Type == "log" && e.Msg != nil:
		p.stream, p.text = "jsonl", []byte(*e.Msg)
		if us, err := strconv.ParseInt(string(e.Time), 10, 64); err == nil && us >= 0 && us < maxMS*1000*120 {
			p.prefix.sinceStartNS = us * int64(time.Microsecond)
		}
	case len(e.Message) > 0:
		p.stream, p.text = "journal", append(message(e.Message), '\n')
		p.prefix.wallNS = realtime([]byte(e.Realtime))
	default:
		return payload{}, false
	}
	return p, true
}

// message reads journald's MESSAGE: text, or a list of byte values where the
// text holds control characters such as colours.
func message(raw json.RawMessage) []byte {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	var values []int // []byte would be read as base64
	if json.Unmarshal(raw, &values) != nil {
		return nil
	}
	out := make([]byte, 0, len(values)+1)
	for _, v := range values {
		out = append(out, byte(v))
	}
	return out
}

// realtime reads microseconds since 1970; 0 when they cannot be.
func realtime(text []byte) int64 {
	us, rest, ok := integer(text)
	if !ok || len(bytes.TrimSpace(rest)) > 0 || us <= 0 || us > int64(1)<<62/1000 {
		return 0
	}
	return us * int64(time.Microsecond)
}
