package archtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"grayfail/internal/testkit"
)

// tracked lists the files of the checkout that git knows or would add, without
// those deleted in the work tree.
func tracked(t *testing.T) []string {
	t.Helper()
	base := root(t)
	cmd := exec.Command("git", "-C", base, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(base, name)); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	if len(names) < 30 {
		t.Fatalf("git knows only %d files", len(names))
	}
	return names
}

// forbidden is text that no tracked file may hold. Written in pieces so that
// this file passes its own test.
type forbidden struct {
	what string
	// literals: one of them is in every match. Looking for them first is what
	// makes this fast.
	literals []string
	pattern  *regexp.Regexp
}

func forbiddenText() []forbidden {
	var (
		hosts = []string{
			"proxy." + "golang.org", "sum." + "golang.org", "deb." + "debian.org", "security." + "debian.org",
			"registry." + "npmjs.org", "pypi." + "org", "files." + "pythonhosted.org", "index." + "crates.io",
		}
		folders = []string{"/work" + "/", "/root" + "/", "/home" + "/"}
	)
	return []forbidden{
		{"a package registry's host: name the package, its client knows where", hosts,
			regexp.MustCompile(strings.ReplaceAll(strings.Join(hosts, "|"), ".", `\.`))},
		{"a path of somebody's own machine", folders,
			regexp.MustCompile(`(?m)(?:^|[^A-Za-z0-9_.\-/$}])/(?:work|root|home)/[A-Za-z0-9_.]`)},
	}
}

func (f forbidden) find(text []byte) []string {
	if !slices.ContainsFunc(f.literals, func(l string) bool { return bytes.Contains(text, []byte(l)) }) {
		return nil
	}
	var out []string
	for _, m := range f.pattern.FindAll(text, -1) {
		out = append(out, fmt.Sprintf("%q: %s", m, f.what))
	}
	return out
}

func foundIn(text []byte) []string {
	var out []string
	for _, f := range forbiddenText() {
		out = append(out, f.find(text)...)
	}
	return out
}

func TestForbiddenText(t *testing.T) {
	for _, name := range tracked(t) {
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range foundIn(text) {
			t.Errorf("%s: %s", name, finding)
		}
	}
	for text, want := range map[string]int{
		"GOPROXY=https://proxy." + "golang.org":        1,
		"cd /work" + "/main":                           1,
		`"/home` + `/me/model.gguf"`:                   1,
		"$R/root" + "/x and lab/work" + "/y":           0,
		"ProtectHome=yes, cgroup at /sys/fs/cgroup/x ": 0,
	} {
		if got := foundIn([]byte(text)); len(got) != want {
			t.Errorf("%q: %d findings, want %d", text, len(got), want)
		}
	}
}

func TestModulePath(t *testing.T) {
	for file, want := range map[string]string{
		"go.mod":                     "module " + module,
		"tools/go.mod":               "module " + module + "/tools",
		"dashboards/generate/go.mod": "module " + module + "/dashboards/generate",

		"packaging/kubernetes/manifests/go.mod": "module " + module + "/packaging/kubernetes/manifests",
	} {
		text, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Error(err)
			continue
		}
		if first, _, _ := strings.Cut(string(text), "\n"); first != want {
			t.Errorf("%s begins with %q, want %q", file, first, want)
		}
	}
}

// The product's module must not carry what only developers run.
func TestToolsStayOutOfTheProduct(t *testing.T) {
	out := testkit.Run(t, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", module+"/cmd/...")
	for _, tool := range []string{"golangci", "grafana-foundation-sdk", "gotestsum", "gonum.org/v1/plot", "/perf", "chromedp"} {
		if strings.Contains(out, tool) {
			t.Errorf("the exporter links %s", tool)
		}
	}
	if !strings.Contains(out, "client_golang") {
		t.Errorf("the list of the exporter's modules looks wrong:\n%s", out)
	}
}
