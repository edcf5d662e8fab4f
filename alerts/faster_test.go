package alerts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// hurry is how much faster than life the rules run in the tests that wait for
// them: what the rules call 30 s passes in one, which is also how often the
// tests scrape and evaluate.
const hurry = 30

// ruleTimes are all times in a file of rules that say when an alert comes and
// goes: for, keep_firing_for, the windows of ranges, and offsets.
var ruleTimes = regexp.MustCompile(`(\bfor: |\bkeep_firing_for: |\[|\boffset )(\d+)([smh])\b`)

// fasterRules writes a copy of the rules whose times are divided by hurry and
// which are otherwise the same, and returns its path.
func fasterRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	unit := map[string]int{"s": 1, "m": 60, "h": 3600}
	file := filepath.Join(t.TempDir(), "faster.rules.yml")
	faster := ruleTimes.ReplaceAllFunc(text, func(match []byte) []byte {
		m := ruleTimes.FindSubmatch(match)
		n, _ := strconv.Atoi(string(m[2])) // digits, by the pattern
		return fmt.Appendf(nil, "%s%ds", m[1], max(1, n*unit[string(m[3])]/hurry))
	})
	if err := os.WriteFile(file, faster, 0o600); err != nil {
		t.Fatal(err)
	}
	sameButForTimes(t, file)
	return file
}

// sameButForTimes holds a copy of the rules to the original: every name, label
// and annotation as it is, every expression too once its times are taken out.
func sameButForTimes(t *testing.T, file string) {
	t.Helper()
	original, copied := readRulesOf(t, rulesFile), readRulesOf(t, file)
	for _, rules := range [][]rule{original, copied} {
		for i := range rules {
			rules[i].Expr = ruleTimes.ReplaceAllString(rules[i].Expr, "${1}TIME")
		}
	}
	if !reflect.DeepEqual(original, copied) {
		t.Fatalf("%s differs from %s in more than its times", file, rulesFile)
	}
}

// span is a time as the tests' logs show it.
func span(from, to time.Time) time.Duration { return to.Sub(from).Round(100 * time.Millisecond) }
