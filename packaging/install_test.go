package packaging_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// dynamicUser is one of the numbers that systemd gives to DynamicUser=.
const dynamicUser = 61184

// TestInstallRunPurge installs the package in a bare Debian, runs the unit's
// own command line with the unit's capabilities, scrapes it, and removes it.
func TestInstallRunPurge(t *testing.T) {
	b := unpackBare(t)
	before, users := b.files(), b.users()

	b.install(deb(t, runtime.GOARCH))
	if got := b.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Version}", "grayfail-exporter"); got != "ii "+version {
		t.Fatalf("dpkg: %q", got)
	}
	if got := b.run("dpkg", "--verify", "grayfail-exporter"); got != "" {
		t.Errorf("dpkg --verify: %s", got)
	}
	const wanted = "/etc/systemd/system/multi-user.target.wants/grayfail_exporter.service"
	if target, err := os.Readlink(b.path(wanted)); err != nil || !strings.HasSuffix(target, "/systemd/system/grayfail_exporter.service") {
		t.Errorf("not enabled at boot: %q %v", target, err)
	}
	if got := b.run("/usr/bin/grayfail_exporter", "check-config", "/etc/grayfail/grayfail.yml"); !strings.HasSuffix(got, ": ok\n") {
		t.Errorf("check-config: %s", got)
	}

	stateDir(t, b)
	runUnit(t, b)

	// An administrator's own words are kept by a removal, and go with a purge.
	const config = "/etc/grayfail/grayfail.yml"
	text := b.read(config) + "requests: {push: {enabled: true}}\n"
	testkit.WriteFile(t, b.path(config), []byte(text))
	b.run("dpkg", "-r", "grayfail-exporter")
	if b.read(config) != text {
		t.Error("a removal has touched the configuration")
	}
	b.run("dpkg", "-P", "grayfail-exporter")
	if got := b.run("sh", "-c", "dpkg-query -W grayfail-exporter 2>&1 || true"); !strings.Contains(got, "no packages found") {
		t.Errorf("dpkg still knows it: %s", got)
	}
	remains(t, before, b.files())
	if got := b.users(); got != users {
		t.Errorf("accounts remain:\n%s", got)
	}
}

// stateDir makes what systemd makes for DynamicUser and StateDirectory. It
// would show the service its own folder below private/ only.
func stateDir(t *testing.T, b *bare) {
	t.Helper()
	private := b.path("/var/lib/private/grayfail_exporter")
	if err := os.MkdirAll(private, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(private, dynamicUser, dynamicUser); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("private/grayfail_exporter", b.path("/var/lib/grayfail_exporter")); err != nil {
		t.Fatal(err)
	}
}

func runUnit(t *testing.T, b *bare) {
	t.Helper()
	u := parseUnit(b.read("/usr/lib/systemd/system/grayfail_exporter.service"))
	command := u.command(b.read("/etc/default/grayfail_exporter"))
	t.Logf("ExecStart: %s", strings.Join(command, " "))
	netns := testkit.Netns(t, "gf-pkg-unit")
	d := b.start(netns, dynamicUser, u.capabilities("AmbientCapabilities"), command...)
	running := func(err error) error {
		select {
		case <-d.Exited:
			t.Fatalf("the service has ended:\n%s", d.Output())
		default:
		}
		return err
	}
	testkit.Eventually(t, time.Minute, func() error {
		_, err := get(t, netns, "/-/ready")
		return running(err)
	})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.PID()))
	if err != nil {
		t.Fatal(err)
	}
	// 12 net_admin, 38 perfmon, 39 bpf (linux/capability.h): what the unit
	// allows, and the exporter has given up when it is ready.
	const mask, none = "000000c000001000", "0000000000000000"
	for _, want := range []string{"Uid:\t61184\t61184\t61184\t61184\n", "CapBnd:\t" + mask, "CapPrm:\t" + none, "CapEff:\t" + none, "CapAmb:\t" + none, "NoNewPrivs:\t1"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in /proc/PID/status:\n%s", want, status)
		}
	}
	var page string
	testkit.Eventually(t, time.Minute, func() error {
		exchange(t, netns)
		var err error
		if page, err = get(t, netns, "/metrics"); err != nil {
			return running(err)
		}
		for _, want := range []string{
			`grayfail_collector_up{collector="tcp_events"} 1`,
			`grayfail_collector_up{collector="tcp_sockets"} 1`,
			`grayfail_collector_up{collector="qdisc"} 1`,
			`grayfail_build_info{`,
		} {
			if !strings.Contains(page, want) {
				return fmt.Errorf("no %s in:\n%s", want, lines(page, "grayfail_collector"))
			}
		}
		return clockedIn(page)
	})
	t.Logf("scraped over loopback of %s:\n%s%s", netns, lines(page, "grayfail_collector_up"), lines(page, "grayfail_tcp_exchange_seconds_count"))
	d.Stop()
	testkit.WriteFile(t, b.path("/var/lib/private/grayfail_exporter/more"), []byte("state, whatever it wrote itself\n"))
}

var clocked = regexp.MustCompile(`(?m)^grayfail_tcp_exchange_seconds_count\{leg="127\.0\.0\.1:50052"\} [1-9]`)

// clockedIn: BPF programs are attached, and saw what exchange did.
func clockedIn(page string) error {
	if !clocked.MatchString(page) {
		return fmt.Errorf("no exchange was clocked:\n%s", lines(page, "grayfail_tcp_"))
	}
	return nil
}

func lines(page, prefix string) string {
	var out strings.Builder
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, prefix) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// remains compares what there was before the installation with what there is
// after the purge.
func remains(t *testing.T, before, after map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		switch was, there := before[name]; {
		case !there:
			t.Errorf("remains: %s %s", name, after[name])
		case was != after[name]:
			t.Errorf("changed: %s: %s, was %s", name, after[name], was)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			t.Errorf("gone: %s", name)
		}
	}
	if len(before) < 1000 || before["/usr/bin/dpkg"] == "" {
		t.Errorf("only %d files were there before", len(before))
	}
}

// TestConfigExampleWhole: the examples in the configuration's comments are
// right too.
func TestConfigExampleWhole(t *testing.T) {
	text, err := os.ReadFile("grayfail.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(text), "legs:\n")
	if !found {
		t.Fatal("no legs in the example")
	}
	path := filepath.Join(t.TempDir(), "grayfail.yml")
	whole := "legs:\n" + regexp.MustCompile(`(?m)^#( *(?:- \{|[a-z_]+:))`).ReplaceAllString(example, "$1")
	testkit.WriteFile(t, path, []byte(whole))
	binary := filepath.Join(packages(t), "grayfail_exporter_linux_"+runtime.GOARCH)
	if out := testkit.Run(t, binary, "check-config", path); !strings.HasSuffix(out, ": ok\n") {
		t.Errorf("%s\n%s", out, whole)
	}
	for _, want := range []string{"\n  static:", "\nrequests:", "\n  push:", "\nnamespaces:"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %q in\n%s", want, whole)
		}
	}
}
