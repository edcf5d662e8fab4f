package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"grayfail/internal/testkit"
)

const unitFile = "systemd/grayfail_exporter.service"

// unit holds the settings of a unit file: each name with its values, in order.
type unit map[string][]string

func parseUnit(text string) unit {
	u := unit{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, value, ok := strings.Cut(line, "="); ok && line[0] != '#' {
			u[name] = append(u[name], value)
		}
	}
	return u
}

// capabilities as setpriv names them: bpf, perfmon, ...
func (u unit) capabilities(setting string) []string {
	var out []string
	for name := range strings.FieldsSeq(strings.Join(u[setting], " ")) {
		out = append(out, strings.ToLower(strings.TrimPrefix(name, "CAP_")))
	}
	return out
}

// command is ExecStart as systemd would split it, with the variables of the
// environment file; a variable that is empty is no argument.
func (u unit) command(environment string) []string {
	var out []string
	for word := range strings.FieldsSeq(u["ExecStart"][0]) {
		if name, ok := strings.CutPrefix(word, "$"); ok {
			value := strings.Join(parseUnit(environment)[name], "")
			out = append(out, strings.Fields(strings.Trim(value, `"`))...)
			continue
		}
		out = append(out, word)
	}
	return out
}

func readUnit(t *testing.T) unit {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	return parseUnit(string(text))
}

// standIn copies the unit with a program that is surely there; the package's
// own is seen by TestInstallRunPurge.
func standIn(t *testing.T, dropIn bool) string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(unitFile))
	testkit.WriteFile(t, path, []byte(strings.Replace(string(text), "/usr/bin/grayfail_exporter ", "/bin/true ", 1)))
	if dropIn {
		text, err := os.ReadFile("systemd/containers.conf")
		if err != nil {
			t.Fatal(err)
		}
		testkit.WriteFile(t, path+".d/containers.conf", text)
	}
	return path
}

func TestUnitIsUnderstood(t *testing.T) {
	for _, dropIn := range []bool{false, true} {
		out, err := exec.Command("systemd-analyze", "verify", "--man=no", standIn(t, dropIn)).CombinedOutput()
		if err != nil || len(out) > 0 { // unknown settings are said, and pass
			t.Errorf("systemd-analyze verify, drop-in %v: %v\n%s", dropIn, err, out)
		}
	}
}

var exposure = regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)

// TestExposure holds the figure that the design allows: at most 3 without the
// drop-in for containers, and not much more with it.
func TestExposure(t *testing.T) {
	for _, c := range []struct {
		dropIn bool
		most   float64
	}{{false, 2.5}, {true, 3.5}} {
		out := testkit.Run(t, "systemd-analyze", "security", "--offline=true", "--no-pager", standIn(t, c.dropIn))
		m := exposure.FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("no figure in:\n%s", out)
		}
		t.Logf("systemd-analyze security --offline: %s, drop-in for containers: %v", m[1], c.dropIn)
		if level, err := strconv.ParseFloat(m[1], 64); err != nil || level > c.most {
			t.Errorf("exposure %s, at most %g: drop-in %v\n%s", m[1], c.most, c.dropIn, out)
		}
	}
}

func TestUnitKeepsToTheDesign(t *testing.T) {
	u := readUnit(t)
	want := []string{"bpf", "perfmon", "net_admin"}
	for _, setting := range []string{"AmbientCapabilities", "CapabilityBoundingSet"} {
		if got := u.capabilities(setting); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", setting, got, want)
		}
	}
	for setting, value := range map[string]string{
		"NoNewPrivileges": "yes", "ProtectSystem": "strict", "DynamicUser": "yes", "StateDirectory": "grayfail_exporter",
	} {
		if got := u[setting]; !slices.Equal(got, []string{value}) {
			t.Errorf("%s: %v, want %s", setting, got, value)
		}
	}
}
