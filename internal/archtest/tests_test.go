package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sleeplessTests: a test waits for a condition, or its clock is a fake one.
// Inside a synctest bubble time is fake, and Sleep returns at once.
func sleeplessTests(f goFile) []string {
	if !f.isTest() {
		return nil
	}
	var bubbles []*ast.CallExpr
	for _, n := range f.uses("testing/synctest", "Test", "Run") {
		ast.Inspect(f.ast, func(m ast.Node) bool {
			if call, ok := m.(*ast.CallExpr); ok && call.Fun == n {
				bubbles = append(bubbles, call)
			}
			return true
		})
	}
	inBubble := func(p token.Pos) bool {
		for _, b := range bubbles {
			if b.Pos() <= p && p < b.End() {
				return true
			}
		}
		return false
	}
	var out []string
	for _, n := range f.uses("time", "Sleep") {
		if !inBubble(n.Pos()) {
			out = append(out, f.at(n)+": time.Sleep in a test: wait for a condition or inject the clock")
		}
	}
	return out
}

func TestNoSleepInTests(t *testing.T) {
	apply(t, sleeplessTests)
	catches(t, sleeplessTests, 1, "p/a_test.go", "package p\nimport \"time\"\nfunc f() { time.Sleep(1) }\n")
	catches(t, sleeplessTests, 0, "p/a.go", "package p\nimport \"time\"\nfunc f() { time.Sleep(1) }\n")
	catches(t, sleeplessTests, 1, "p/a_test.go", `package p
import ("time"; "testing"; "testing/synctest")
func f(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { time.Sleep(1) })
	time.Sleep(1)
}`)
}

// skiplessTests: what cannot run here has failed here. An input that a fuzz
// target does not care about is left with return.
func skiplessTests(f goFile) []string {
	if !f.isTest() && !strings.HasPrefix(f.path, "internal/testkit/") {
		return nil
	}
	var out []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch sel.Sel.Name {
		case "Skip", "Skipf", "SkipNow":
			if id, ok := sel.X.(*ast.Ident); ok && contains([]string{"t", "b", "f", "tb"}, id.Name) {
				out = append(out, f.at(call)+": a skipped test: let it fail, or make it run")
			}
		}
		return true
	})
	return out
}

// scriptSkip is the skip command of a testscript, with or without a condition.
var scriptSkip = regexp.MustCompile(`(?m)^(\[[^\]]*\] )*skip\b`)

func TestNoSkippedTests(t *testing.T) {
	apply(t, skiplessTests)
	catches(t, skiplessTests, 1, "p/a_test.go", "package p\nimport \"testing\"\nfunc f(t *testing.T) { t.Skip() }\n")
	catches(t, skiplessTests, 0, "p/a_test.go", "package p\nfunc f(dec decoder) { dec.Skip() }\n")

	for _, name := range tracked(t) {
		if filepath.Ext(name) != ".txt" || !strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		if scriptSkip.Match(text) {
			t.Errorf("%s: a script that skips", name)
		}
	}
	if !scriptSkip.MatchString("exec true\n[!root] skip 'not root'\n") {
		t.Error("the pattern for skipping scripts finds none")
	}
}
