package llamalog

import (
	"bytes"
	"time"
)

// A prefix is what stands before an engine's words on a line.
type prefix struct {
	// origin tells several engines in one log apart: a router's port or the
	// name that Compose puts in front.
	origin string
	// wallNS is the line's own Unix time; 0 when it has none.
	wallNS int64
	// sinceStartNS is the time since the engine started; -1 when not given.
	sinceStartNS int64
	// more: the rest of this line follows in the next record (containerd).
	partial bool
}

const maxOrigin = 64

// trimPrefix takes off everything known that may stand before an engine's
// words, in the order in which programs put it there. Nothing else is looked
// over: a prompt that a verbose log quotes cannot pose as a timing.
func trimPrefix(text []byte) (prefix, []byte) {
	p := prefix{sinceStartNS: -1}
	text = bytes.TrimLeft(text, "\x00") // a file truncated under its writer
	text = trimCompose(&p, text)
	text = trimWall(&p, text)
	text = trimRouter(&p, text)
	text = trimSinceStart(&p, text)
	if len(text) > 2 && text[1] == ' ' && bytes.IndexByte([]byte("IWED"), text[0]) >= 0 {
		text = text[2:] // the level
	}
	return p, text
}

// trimCompose takes off "service-1  | ".
func trimCompose(p *prefix, text []byte) []byte {
	end := 0
	for end < len(text) && end < maxOrigin && isName(text[end]) {
		end++
	}
	rest := bytes.TrimLeft(text[end:], " ")
	if end == 0 || len(rest) == len(text)-end {
		return text
	}
	if after, ok := bytes.CutPrefix(rest, []byte("| ")); ok {
		p.origin = string(text[:end])
		return after
	}
	return text
}

func isName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// wallLayouts: containerd and "docker logs -t" (UTC, nanoseconds), journalctl
// -o short-iso-precise and short-iso.
var wallLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999-0700"}

// trimWall takes off a date, and what syslog, journalctl or containerd put
// behind it.
func trimWall(p *prefix, text []byte) []byte {
	word, rest, ok := bytes.Cut(text, []byte(" "))
	if ok && len(word) >= len("2006-01-02T15:04:05Z") && len(word) <= 40 && word[4] == '-' {
		for _, layout := range wallLayouts {
			t, err := time.Parse(layout, string(word))
			if err == nil && t.Year() >= 1970 && t.Year() < 2262 {
				p.wallNS = t.UnixNano()
				return trimSyslog(trimContainerd(p, rest))
			}
		}
		return text
	}
	// "Jan  2 15:04:05 ": no year and no zone, so no time.
	const stamp = len("Jan  2 15:04:05")
	if len(text) > stamp && text[3] == ' ' && text[stamp] == ' ' {
		if _, err := time.Parse(time.Stamp, string(text[:stamp])); err == nil {
			return trimSyslog(text[stamp+1:])
		}
	}
	return text
}

// trimContainerd takes off "stdout F " (CRI log format); P is a piece of a
// line.
func trimContainerd(p *prefix, text []byte) []byte {
	for _, stream := range []string{"stdout ", "stderr "} {
		rest, ok := bytes.CutPrefix(text, []byte(stream))
		if ok && len(rest) >= 2 && rest[1] == ' ' && (rest[0] == 'F' || rest[0] == 'P') {
			p.partial = rest[0] == 'P'
			return rest[2:]
		}
	}
	return text
}

// trimSyslog takes off "host program[pid]: ".
func trimSyslog(text []byte) []byte {
	host, rest, ok := bytes.Cut(text, []byte(" "))
	if !ok || len(host) == 0 || len(host) > maxOrigin {
		return text
	}
	program, rest, ok := bytes.Cut(rest, []byte(": "))
	if !ok || len(program) == 0 || len(program) > maxOrigin || bytes.IndexByte(program, ' ') >= 0 {
		return text
	}
	for _, c := range host {
		if !isName(c) {
			return text
		}
	}
	return rest
}

// trimRouter takes off "[36703] ": llama-server in router mode (2025) puts the
// port of the child before the child's lines.
func trimRouter(p *prefix, text []byte) []byte {
	if len(text) == 0 || text[0] != '[' {
		return text
	}
	end := 1
	for end < len(text) && end < 6 && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	rest, ok := bytes.CutPrefix(text[end:], []byte("] "))
	if end == 1 || !ok {
		return text
	}
	p.origin += string(text[1:end])
	return rest
}

// trimSinceStart takes off "M.SS.mmm.uuu " (llama.cpp common/log.cpp,
// --log-timestamps).
func trimSinceStart(p *prefix, text []byte) []byte {
	var part [4]int64
	rest := text
	for i := range part {
		if len(rest) == 0 || rest[0] < '0' || rest[0] > '9' {
			return text
		}
		v, after, ok := integer(rest)
		if !ok || v < 0 || i > 0 && v > 999 {
			return text
		}
		end := byte('.')
		if i == 3 {
			end = ' '
		}
		if len(after) == 0 || after[0] != end {
			return text
		}
		part[i], rest = v, after[1:]
	}
	if part[0] > 60*24*366*10 { // minutes of ten years: no time since start
		return text
	}
	p.sinceStartNS = (part[0]*60+part[1])*int64(time.Second) + part[2]*int64(time.Millisecond) + part[3]*int64(time.Microsecond)
	return rest
}

// trimColours takes ANSI escape sequences (CSI ... letter) out of text, in
// place.
func trimColours(text []byte) []byte {
	if bytes.IndexByte(text, '\x1b') < 0 {
		return text
	}
	out := text[:0]
	for i := 0; i < len(text); i++ {
		if text[i] != '\x1b' {
			out = append(out, text[i])
			continue
		}
		if i+1 < len(text) && text[i+1] == '[' {
			for i += 2; i < len(text) && (text[i] < 0x40 || text[i] > 0x7e); i++ {
			}
		}
	}
	return out
}
