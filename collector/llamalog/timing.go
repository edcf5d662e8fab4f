package llamalog

import (
	"bytes"
	"math"
	"strconv"
)

// What a timing line is about.
type timingKind uint8

const (
	timingNone timingKind = iota
	timingPrompt
	timingGenerated
	timingTotal
)

// A timing is "NAME = MS ms / N tokens (...)". The engine's own rates are left
// alone: their meaning changed between builds.
type timing struct {
	kind timingKind
	ms   float64
	n    int
	// broken: one of the lines above, with numbers that cannot be read.
	broken bool
}

const (
	maxMS     = 30 * 24 * 3600 * 1000 // longer than any request
	maxTokens = 1_000_000_000
)

// timingNames are the names used by llama-server and llama-cli.
var timingNames = []struct {
	name string
	kind timingKind
}{
	{"prompt eval time", timingPrompt},
	{"eval time", timingGenerated},
	{"total time", timingTotal},
}

// parseTiming reads
//
//	prompt eval time =      81.75 ms /    29 tokens (    2.82 ms per token,   354.72 tokens per second)
//	       eval time =     279.96 ms /    24 tokens (...)     or "24 runs"
//	      total time =     361.71 ms /    53 tokens           or without a count
func parseTiming(text []byte) timing {
	text = bytes.TrimLeft(text, " ")
	for _, known := range timingNames {
		rest, ok := bytes.CutPrefix(text, []byte(known.name))
		if !ok {
			continue
		}
		rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte("="))
		if !ok {
			return timing{}
		}
		t := timing{kind: known.kind}
		t.ms, rest, ok = number(rest)
		ok = ok && t.ms >= 0 && t.ms <= maxMS
		rest, unit := bytes.CutPrefix(rest, []byte(" ms"))
		t.broken = !ok || !unit
		if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte("/")); ok {
			n, after, ok := number(rest)
			word := bytes.HasPrefix(after, []byte(" tokens")) || bytes.HasPrefix(after, []byte(" runs"))
			t.broken = t.broken || !ok || !word || n < 0 || n > maxTokens || n != math.Trunc(n)
			if !t.broken {
				t.n = int(n)
			}
		} else if t.kind != timingTotal {
			t.broken = true // 2023's total has no count, the others always do
		}
		if t.broken {
			t.ms, t.n = 0, 0
		}
		return t
	}
	return timing{}
}

// number reads a decimal after spaces. nan and inf, which the engine prints
// for a division by nothing, are no numbers.
func number(b []byte) (v float64, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " ")
	end := 0
	for end < len(b) && end < 32 && (b[end] == '.' || b[end] == '-' || '0' <= b[end] && b[end] <= '9') {
		end++
	}
	v, err := strconv.ParseFloat(string(b[:end]), 64)
	return v, b[end:], err == nil
}

// integer reads a whole number after spaces.
func integer(b []byte) (v int64, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " ")
	end := 0
	for end < len(b) && end < 20 && (b[end] == '-' && end == 0 || '0' <= b[end] && b[end] <= '9') {
		end++
	}
	v, err := strconv.ParseInt(string(b[:end]), 10, 64)
	return v, b[end:], err == nil
}

// maxRate is beyond any engine: a span rounded to nearly nothing (0.7.0 writes
// 0.00 ms for a one-token reply) is no measurement.
const maxRate = 1e6

// rate in tokens per second; 0 where there is none.
func rate(n int, ms float64) float64 {
	if n <= 0 || ms <= 0 {
		return 0
	}
	if r := float64(n) / ms * 1000; r <= maxRate {
		return r
	}
	return 0
}
