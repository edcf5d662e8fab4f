package export

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"qwen 2.5", "qwen 2.5"},
		{"日本語", "日本語"},
		{"a\nb", "a\uFFFDb"},
		{"\x1b[2J", "\uFFFD[2J"},
		{"a\x7fb", "a\uFFFDb"},
		{"a\u0085b\u2028c\u202Ed", "a\uFFFDb\uFFFDc\uFFFDd"},
		{"\xff", "\uFFFD"},
		{"12345678", "12345678"},
		{"123456789", "1234567…"},
		{"ééééééééé", "ééééééé…"},
		{"éééééééé", "éééééééé"},
		{"1234567\xff", "1234567\uFFFD"},
	} {
		if got := clean(c.in, 8); got != c.want {
			t.Errorf("clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 128)
	}
	f.Add("123456789", 8)
	f.Fuzz(func(t *testing.T, s string, max int) {
		if max < 1 || max > 1024 {
			max = 64
		}
		got := clean(s, max)
		if !utf8.ValidString(got) {
			t.Errorf("clean(%q) = %q: not valid UTF-8", s, got)
		}
		if n := utf8.RuneCountInString(got); n > max {
			t.Errorf("clean(%q, %d) has %d runes", s, max, n)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsGraphic(r) }); i >= 0 {
			t.Errorf("clean(%q) = %q: not graphic at %d", s, got, i)
		}
		if again := clean(got, max); again != got {
			t.Errorf("clean twice: %q, then %q", got, again)
		}
	})
}

func TestSentence(t *testing.T) {
	if got := sentence("maps: no\nlimit: no\x1b"); got != "maps: no; limit: no\ufffd" {
		t.Errorf("%q", got)
	}
}
