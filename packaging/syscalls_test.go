package packaging_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// allowed expands SystemCallFilter by systemd's own groups, in the order of
// the lines.
func (u unit) allowed(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	var expand func(name string, set func(string))
	expand = func(name string, set func(string)) {
		if !strings.HasPrefix(name, "@") {
			set(name)
			return
		}
		for line := range strings.Lines(testkit.Run(t, "systemd-analyze", "--no-pager", "syscall-filter", name)) {
			line = strings.TrimSpace(line)
			if line != "" && line != name && line[0] != '#' {
				expand(line, set)
			}
		}
	}
	expand("@default", func(call string) { all[call] = true }) // implied by a list that allows
	for _, list := range u["SystemCallFilter"] {
		list, forbid := strings.CutPrefix(list, "~")
		for name := range strings.FieldsSeq(list) {
			expand(name, func(call string) { all[call] = !forbid })
		}
	}
	return all
}

// called matches one line of strace -f -qq: process, call, arguments, result.
var called = regexp.MustCompile(`^\d+ +([a-z_0-9]+)\(`)

// TestSystemCallsAreAllowed runs the exporter under strace, from its start
// over attached programs, a clocked exchange and a scrape to its stop: all that
// it calls must be in the unit's SystemCallFilter.
func TestSystemCallsAreAllowed(t *testing.T) {
	testkit.RequireRoot(t)
	allowed := readUnit(t).allowed(t)
	for call, want := range map[string]bool{"bpf": true, "capset": true, "read": true, "socket": true, "mount": false, "init_module": false, "setuid": false, "ptrace": false, "perf_event_open": false} {
		if allowed[call] != want {
			t.Errorf("the filter allows %s: %v, want %v", call, allowed[call], want)
		}
	}
	netns := testkit.Netns(t, "gf-pkg-calls")
	trace := filepath.Join(t.TempDir(), "trace")
	binary := filepath.Join(packages(t), "grayfail_exporter_linux_"+runtime.GOARCH)
	d := testkit.Start(t, "ip", "netns", "exec", netns, "strace", "-f", "-qq", "--seccomp-bpf", "-o", trace,
		binary, "serve", "--state.dir", t.TempDir())
	testkit.Eventually(t, 2*time.Minute, func() error {
		if _, err := get(t, netns, "/-/ready"); err != nil {
			return err
		}
		exchange(t, netns)
		page, err := get(t, netns, "/metrics")
		if err == nil {
			err = clockedIn(page)
		}
		return err
	})
	stopChild(t, d)
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if m := called.FindStringSubmatch(line); m != nil {
			seen[m[1]]++
		}
	}
	for _, call := range slices.Sorted(maps.Keys(seen)) {
		if !allowed[call] {
			t.Errorf("%s is called %d times, and refused by SystemCallFilter", call, seen[call])
		}
	}
	if seen["bpf"] < 10 || seen["execve"] == 0 || seen["sendto"]+seen["sendmsg"] == 0 {
		t.Errorf("the trace looks wrong: %v", seen)
	}
	t.Logf("%d kinds of system calls, bpf %d times, all of them allowed", len(seen), seen["bpf"])
}

// stopChild ends the program under strace, which keeps SIGTERM for itself,
// and strace with it.
func stopChild(t *testing.T, strace *testkit.Daemon) {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", strace.PID()))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		t.Fatalf("children of strace: %q: %v", children, err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-strace.Exited:
	case <-time.After(time.Minute):
		t.Error("no end within a minute of SIGTERM")
	}
}
