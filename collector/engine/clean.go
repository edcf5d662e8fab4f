package engine

import (
	"fmt"
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Longest names let through, in bytes. An id ends up in exemplars, whose
// labels may hold 128 characters together (OpenMetrics 1.0).
const (
	MaxID    = 64
	MaxModel = 128
)

// CleanName makes a name of foreign origin safe for labels, logs and
// exemplars: at most max bytes cut at a character's end, valid UTF-8, no
// control or invisible formatting characters (replaced by '_'), no space
// around it. It may return "".
func CleanName(name string, max int) string {
	clean := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) {
			return '_'
		}
		return r
	}, strings.TrimSpace(name))
	if len(clean) > max {
		for max > 0 && !utf8.RuneStart(clean[max]) {
			max--
		}
		clean = strings.TrimSpace(clean[:max])
	}
	return clean
}

// CleanID makes an id of foreign origin safe: at most MaxID printable ASCII
// characters; quotes, backslashes, spaces and everything else become '_'. A
// longer one is cut, and ends in a hash of the whole: ids often differ only
// at their ends.
func CleanID(id string) string {
	if len(id) > MaxID {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(id)) // never fails
		id = fmt.Sprintf("%s~%016x", id[:MaxID-17], sum.Sum64())
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == '"' || r == '\'' || r == '\\' {
			return '_'
		}
		return r
	}, id)
}
