package archtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"grayfail/internal/testkit"
)

// | `module` | licence | in the binary | what for |.
var justified = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| (yes|tests|lab) \\| ([^|]{20,}) \\|$")

// TestDependenciesAreJustified: docs/dependencies.md lists what go.mod
// requires directly, and nothing else.
func TestDependenciesAreJustified(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	out := testkit.Run(t, "go", "-C", root(t), "mod", "edit", "-json")
	if err := json.Unmarshal([]byte(out), &mod); err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for path := range strings.FieldsSeq(testkit.Run(t, "go", "-C", root(t), "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/grayfail_exporter")) {
		linked[path] = true
	}
	var want, got []string
	for _, r := range mod.Require {
		if !r.Indirect {
			want = append(want, r.Path)
		}
	}
	text, err := os.ReadFile(filepath.Join(root(t), "docs/dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range justified.FindAllStringSubmatch(string(text), -1) {
		got = append(got, m[1])
		if (m[3] == "yes") != linked[m[1]] {
			t.Errorf("%s: in the binary %s, says docs/dependencies.md", m[1], m[3])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		for _, path := range want {
			if !slices.Contains(got, path) {
				t.Errorf("go.mod requires %s, and docs/dependencies.md does not say what for", path)
			}
		}
		for _, path := range got {
			if !slices.Contains(want, path) {
				t.Errorf("docs/dependencies.md has %s, which go.mod does not require", path)
			}
		}
	}
	if len(want) < 10 || len(got) > len(want) {
		t.Errorf("%d required, %d lines", len(want), len(got))
	}
}
