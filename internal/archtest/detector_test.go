package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// impure are the packages through which the detector could reach a clock, the
// outside world or chance. Whole subtrees: "os" stands for "os/signal" too.
var impure = []string{
	"os", "net", "io/fs", "io/ioutil", "syscall", "runtime", "context", "log", "unsafe", "sync", "expvar", "crypto/rand",
	"golang.org/x/sys", "golang.org/x/net", "golang.org/x/sync", "golang.org/x/time",
	"github.com/rs/zerolog", "github.com/prometheus",
}

// harmless are exceptions inside those subtrees: values only.
var harmless = []string{"net/netip"}

// seeded are the parts of math/rand that need a seed given by the caller; all
// others draw from a global, random source.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "PCG", "ChaCha8", "Zipf", "Source"}

func pureDetector(f goFile) []string {
	if area(module+"/"+f.path) != "detector" || f.isTest() {
		return nil
	}
	var out []string
	add := func(n ast.Node, what string) {
		out = append(out, fmt.Sprintf("%s: the detector is pure: no %s", f.at(n), what))
	}
	for _, spec := range f.ast.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		for _, bad := range impure {
			if (path == bad || strings.HasPrefix(path, bad+"/")) && !slices.Contains(harmless, path) {
				add(spec, path)
			}
		}
	}
	for _, n := range f.uses("time", "Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep", "Local") {
		add(n, "clock: the time comes with the events")
	}
	for _, n := range f.uses("math/rand/v2") {
		if !slices.Contains(seeded, n.(*ast.SelectorExpr).Sel.Name) {
			add(n, "global random source: take a seed")
		}
	}
	if _, ok := f.imports()["math/rand"]; ok {
		add(f.ast, "math/rand: use math/rand/v2 with a seed")
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "goroutine")
		case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			add(n, "channel")
		}
		return true
	})
	return out
}

func TestDetectorIsPure(t *testing.T) {
	apply(t, pureDetector)

	for src, want := range map[string]int{
		"package detector\nimport \"time\"\nvar x = time.Now()\n":                         1,
		"package detector\nimport clock \"time\"\nvar x = clock.Now\n":                    1,
		"package detector\nimport \"time\"\nvar x = time.Second\n":                        0,
		"package detector\nimport _ \"os/signal\"\n":                                      1,
		"package detector\nimport _ \"net/http\"\n":                                       1,
		"package detector\nimport _ \"net/netip\"\n":                                      0,
		"package detector\nfunc f() { go f() }\n":                                         1,
		"package detector\nfunc f(c chan int) { c <- 1 }\n":                               2,
		"package detector\nimport \"math/rand/v2\"\nvar x = rand.N(3)\n":                  1,
		"package detector\nimport \"math/rand/v2\"\nvar x = rand.New(rand.NewPCG(1,2))\n": 0,
	} {
		catches(t, pureDetector, want, "detector/x.go", src)
	}
}
