package archtest

import (
	"fmt"
	"strings"
	"testing"
)

// area is the part of the tree that a package or import path belongs to:
// "event", "collector", ...; "" for other modules and the standard library.
// lab/campaign, with its commands, is a part of its own: the product offers
// campaigns to operators, the rest of the lab is for tests.
func area(importPath string) string {
	rest, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	if rest == "lab/campaign" || strings.HasPrefix(rest, "lab/campaign/") || strings.HasPrefix(rest, "lab/cmd/campaign") {
		return "campaign"
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// mayImport lists the areas that product code of an area imports, besides
// itself. Data flows one way: collector and ebpf -> event -> detector ->
// export, and only cmd knows all of them.
var mayImport = map[string][]string{
	"event":     nil,
	"internal":  {"event"},
	"collector": {"event", "internal"},
	"ebpf":      {"event", "internal"},
	"detector":  {"event", "internal"},
	"export":    {"event", "internal"},
	"campaign":  {"event", "internal", "collector", "detector", "lab"}, // the collectors' parsers read what the engines answer
	"lab":       {"event", "internal"},
	"cmd":       {"event", "internal", "collector", "ebpf", "detector", "export", "campaign"},
	"scripts":   {"event", "internal", "detector", "export", "lab"}, // what makes committed files: the evaluation runs the detector, pictures show the page
	"alerts":    nil,
	"packaging": nil,
	// The generator is a module of its own and imports nothing of ours.
	"dashboards": nil,
}

// The four that must not know each other, in their tests either.
var strangers = []string{"collector", "ebpf", "detector", "export"}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

func importDirection(f goFile) []string {
	own := area(module + "/" + f.path)
	allowed, known := mayImport[own]
	if !known {
		return []string{fmt.Sprintf("%s: area %q is not in mayImport: say whom it may import", f.path, own)}
	}
	var out []string
	for path := range f.imports() {
		other := area(path)
		switch {
		case path == module || other == own:
		case other == "":
			if first, _, _ := strings.Cut(path, "/"); own == "event" && strings.Contains(first, ".") {
				out = append(out, fmt.Sprintf("%s: event imports the standard library only, not %s", f.path, path))
			}
		case f.isTest():
			// Tests join what product code keeps apart, but for the four.
			if contains(strangers, own) && contains(strangers, other) {
				out = append(out, fmt.Sprintf("%s: %s must not know %s, in tests either", f.path, own, path))
			}
		case path == module+"/internal/testkit" && own != "lab":
			out = append(out, fmt.Sprintf("%s: testkit is for tests", f.path))
		case !contains(allowed, other):
			out = append(out, fmt.Sprintf("%s: %s must not import %s", f.path, own, path))
		}
	}
	return out
}

func TestImportDirection(t *testing.T) {
	apply(t, importDirection)

	const src = "package p\nimport _ %q\n"
	for _, bad := range [][2]string{
		{"event/a.go", "github.com/rs/zerolog"},
		{"event/a.go", "grayfail/internal/bound"},
		{"internal/bound/a.go", "grayfail/collector/qdisc"},
		{"collector/qdisc/a.go", "grayfail/ebpf"},
		{"ebpf/a.go", "grayfail/collector/netns"},
		{"detector/a.go", "grayfail/export"},
		{"export/a.go", "grayfail/detector"},
		{"export/a_test.go", "grayfail/detector"},
		{"cmd/grayfail_exporter/a.go", "grayfail/lab"},
		{"cmd/grayfail_exporter/a.go", "grayfail/lab/campaigns"},
		{"lab/a.go", "grayfail/lab/campaign"},
		{"lab/campaign/report/a.go", "grayfail/export"},
		{"cmd/grayfail_exporter/a.go", "grayfail/internal/testkit"},
		{"unheardof/a.go", "fmt"},
	} {
		catches(t, importDirection, 1, bad[0], fmt.Sprintf(src, bad[1]))
	}
	for _, good := range [][2]string{
		{"event/a.go", "net/netip"},
		{"collector/legs/a.go", "grayfail/collector/netns"},
		{"detector/a.go", "gonum.org/v1/gonum/stat"},
		{"cmd/grayfail_exporter/a.go", "grayfail/detector"},
		{"cmd/grayfail_exporter/a.go", "grayfail/lab/campaign/report"},
		{"lab/campaign/report/a.go", "grayfail/detector"},
		{"alerts/a_test.go", "grayfail/export"},
	} {
		catches(t, importDirection, 0, good[0], fmt.Sprintf(src, good[1]))
	}
}

// Other programs are started by tests and by what stages experiments, never by
// the exporter: it reads the kernel itself.
func execOnlyInLab(f goFile) []string {
	if _, ok := f.imports()["os/exec"]; !ok || f.isTest() {
		return nil
	}
	for _, prefix := range []string{"lab/", "campaign/", "scripts/", "internal/testkit/"} {
		if strings.HasPrefix(f.path, prefix) {
			return nil
		}
	}
	return []string{f.path + ": os/exec is for lab, campaign, scripts and tests"}
}

func TestExecOnlyInLab(t *testing.T) {
	apply(t, execOnlyInLab)
	catches(t, execOnlyInLab, 1, "collector/qdisc/tc.go", "package qdisc\nimport _ \"os/exec\"\n")
	catches(t, execOnlyInLab, 0, "lab/netns.go", "package lab\nimport _ \"os/exec\"\n")
}
