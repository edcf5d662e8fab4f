package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
)

// TestPagesNameTestsThatExist: a page that rests on tests names real ones.
func TestPagesNameTestsThatExist(t *testing.T) {
	there := map[string]bool{}
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
	}
	for _, page := range []string{"docs/faults.md", "docs/threat-model.md", "docs/limits.md"} {
		text, err := os.ReadFile(filepath.Join(root(t), page))
		if err != nil {
			t.Fatal(err)
		}
		named := namedTest.FindAllStringSubmatch(string(text), -1)
		if len(named) < 5 {
			t.Errorf("%s names %d tests", page, len(named))
		}
		for _, m := range named {
			if !there[m[1]] {
				t.Errorf("%s names %s, which there is not", page, m[1])
			}
		}
	}
}
