package export

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabelRunes bounds a label value. Model names of public hubs stay below
// 100; ids beyond this are somebody's mistake or attack.
const maxLabelRunes = 128

// clean makes text of unknown origin fit for a label value, an exemplar and a
// terminal: valid UTF-8, nothing but graphic characters (no control
// characters, line separators or direction overrides), at most max runes.
// What is replaced becomes U+FFFD, what is cut ends in "…".
func clean(s string, max int) string {
	if isClean(s, max) {
		return s
	}
	var b strings.Builder
	n := 0
	for i := 0; i < len(s); n++ {
		r, size := utf8.DecodeRuneInString(s[i:])
		if n == max-1 && i+size < len(s) {
			b.WriteRune('…')
			break
		}
		if !unicode.IsGraphic(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		i += size
	}
	return b.String()
}

// isClean is the way without allocation: nearly every name is short ASCII.
func isClean(s string, max int) bool {
	if len(s) > max {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}

func label(s string) string { return clean(s, maxLabelRunes) }

// sentence is text of several words on one line. The lines of joined errors
// (errors.Join) become parts of it.
func sentence(s string) string { return clean(strings.ReplaceAll(s, "\n", "; "), maxDetailRunes) }
