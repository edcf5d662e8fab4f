package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "grayfail"

// goFile is one parsed file.
type goFile struct {
	path string // relative to the module's root, slashes
	src  []byte
	fset *token.FileSet
	ast  *ast.File
}

func (f goFile) dir() string     { return path.Dir(f.path) }
func (f goFile) isTest() bool    { return strings.HasSuffix(f.path, "_test.go") }
func (f goFile) generated() bool { return ast.IsGenerated(f.ast) }

// at gives "path:line".
func (f goFile) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

// imports maps the import paths of the file to the names used for them.
func (f goFile) imports() map[string]string {
	out := make(map[string]string)
	for _, spec := range f.ast.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(p)
		if name == "v2" { // math/rand/v2 is called rand
			name = path.Base(path.Dir(p))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[p] = name
	}
	return out
}

// uses reports every use of pkg.name (a call or a mere mention) for the names
// given; no names means all.
func (f goFile) uses(pkg string, names ...string) []ast.Node {
	local, ok := f.imports()[pkg]
	if !ok {
		return nil
	}
	var out []ast.Node
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if ok && id.Name == local && (len(names) == 0 || slices.Contains(names, sel.Sel.Name)) {
			out = append(out, sel)
		}
		return true
	})
	return out
}

// root is the module's root: the test runs in internal/archtest.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("no module at %s: %v", dir, err)
	}
	return dir
}

func parseGo(t *testing.T, name, src string) goFile {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return goFile{path: name, src: []byte(src), fset: fset, ast: tree}
}

// goFiles parses every Go file of the checkout whatever its build tags, but
// for testdata and folders whose name begins with a dot.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	base := root(t)
	var out []goFile
	err := filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != base && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(base, p)
		if err != nil {
			return err
		}
		out = append(out, parseGo(t, filepath.ToSlash(rel), string(src)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("found only %d Go files under %s: the walk looks in the wrong place", len(out), base)
	}
	return out
}

// rule finds what is wrong in a file: "path:line: what".
type rule func(goFile) []string

func apply(t *testing.T, r rule) {
	t.Helper()
	for _, f := range goFiles(t) {
		for _, finding := range r(f) {
			t.Error(finding)
		}
	}
}

// catches proves that a rule sees what it is for: src at path must give want
// findings.
func catches(t *testing.T, r rule, want int, path, src string) {
	t.Helper()
	if got := r(parseGo(t, path, src)); len(got) != want {
		t.Errorf("%s: %d findings, want %d: %q in\n%s", path, len(got), want, got, src)
	}
}
