package main

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"grayfail/internal/privilege"
	"grayfail/internal/testkit"
)

// The sets of /proc/PID/status: 1 dac_override, 2 dac_read_search,
// 10 net_bind_service, 12 net_admin, 19 sys_ptrace, 21 sys_admin, 38 perfmon,
// 39 bpf (linux/capability.h).
const (
	noCapability = "0000000000000000"
	unitSet      = "000000c000001000"
	dropInSet    = "000000c000281000"
)

// rightsCase starts the exporter with some capabilities and says what every
// thread has left when it serves.
type rightsCase struct {
	uid        string
	caps       string // for setpriv; "" keeps all of root's
	namespaces bool   // one is configured
	before     string // CapEff as it was started; "" for root's, which kernels differ in
	after      string // CapEff and CapPrm
	bounding   string
	said       string
}

func TestCapabilitiesAreGivenUp(t *testing.T) {
	testkit.RequireRoot(t)
	for name, c := range map[string]rightsCase{
		"unit": {
			uid: "61184", caps: "-all,+bpf,+perfmon,+net_admin", before: unitSet,
			after: noCapability, bounding: unitSet,
			said: `"kept":[],"dropped":["net_admin","perfmon","bpf"],"bounding_set_dropped":false`,
		},
		"unit with the drop-in for containers": {
			uid: "61184", caps: "-all,+bpf,+perfmon,+net_admin,+sys_ptrace,+sys_admin", namespaces: true, before: dropInSet,
			after: "0000000000280000", bounding: dropInSet,
			said: `"kept":["sys_ptrace","sys_admin"],"dropped":["net_admin","perfmon","bpf"]`,
		},
		"drop-in, and no namespace to enter": {
			uid: "61184", caps: "-all,+bpf,+perfmon,+net_admin,+sys_ptrace,+sys_admin", before: dropInSet,
			after: "0000000000080000", bounding: dropInSet,
			said: `"kept":["sys_ptrace"],"dropped":["net_admin","sys_admin","perfmon","bpf"]`,
		},
		"root": {
			uid: "0", after: "0000000000080404", bounding: "0000000000080404",
			said: `"kept":["dac_read_search","net_bind_service","sys_ptrace"]`,
		},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}

func (c *rightsCase) run(t *testing.T) {
	ports := []string{freePort(t), freePort(t)}
	dir := filepath.Dir(copySelf(t)) // the user of the service can enter it
	file := filepath.Join(dir, "grayfail.yml")
	namespaces := "{}"
	if c.namespaces {
		namespaces = "{names: [" + testkit.Netns(t, fmt.Sprintf("gf-trust-rights-%d", os.Getpid())) + "]}"
	}
	configure := func(ports, namespaces string) {
		testkit.WriteFile(t, file, []byte("namespaces: "+namespaces+"\nlegs: {discover: {ports: ["+ports+"]}}\n"))
	}
	configure(ports[0], namespaces)
	args := []string{"--reuid", c.uid, "--regid", c.uid, "--clear-groups"}
	if c.caps != "" {
		args = append(args, "--inh-caps", c.caps, "--ambient-caps", c.caps, "--bounding-set", c.caps)
	}
	args = append(args, "--", "sh", "-c", `grep -E "^(Cap|NoNew)" /proc/self/status; exec "$0" "$@"`,
		"env", "GRAYFAIL_EXPORTER_MAIN=1", filepath.Join(dir, "grayfail_exporter"),
		"serve", "--web.listen-address", "127.0.0.1:0", "--sample.interval", "50ms", "--config.file", file)
	d := testkit.Start(t, "setpriv", args...)
	e := attached(t, d)
	before, _, _ := strings.Cut(d.Output(), "{")
	if !strings.Contains(before, "CapEff:\t"+c.before) {
		t.Errorf("started with:\n%s\nwant CapEff %s", before, c.before)
	}
	t.Logf("as started:\n%s", before)
	c.threads(t, d.PID())
	if !strings.Contains(d.Output(), c.said) {
		t.Errorf("no %s in:\n%s", c.said, d.Output())
	}

	// The programs go on, also on a port that a reload brings.
	eventually(t, func() error { return clockedOn(t, e, ports[0]) })
	configure(ports[1], namespaces)
	if code, body := e.post("/-/reload", ""); code != http.StatusOK {
		t.Errorf("reload: %d %s", code, body)
	}
	eventually(t, func() error { return clockedOn(t, e, ports[1]) })

	// A namespace that the configuration did not name before the rights went.
	if !c.namespaces && strings.Contains(d.Output(), `"sys_admin"`) {
		configure(ports[1], "{auto: true}")
		if code, body := e.post("/-/reload", ""); code == http.StatusOK || !strings.Contains(body, "CAP_SYS_ADMIN") || !strings.Contains(body, "restart") {
			t.Errorf("reload with namespaces: %d %s", code, body)
		}
	}
	c.threads(t, d.PID()) // those that were born meanwhile too
}

// threads looks at every thread there is.
func (c *rightsCase) threads(t *testing.T, pid int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d threads, %v", len(files), err)
	}
	want := map[string]string{"CapEff": c.after, "CapPrm": c.after, "CapInh": noCapability, "CapAmb": noCapability, "CapBnd": c.bounding, "NoNewPrivs": "1"}
	seen := 0
	for _, file := range files {
		status, err := os.ReadFile(file)
		if err != nil {
			continue // ended meanwhile
		}
		seen++
		for _, field := range slices.Sorted(maps.Keys(want)) {
			if !strings.Contains(string(status), field+":\t"+want[field]+"\n") {
				t.Errorf("%s: want %s %s in\n%s", file, field, want[field], status)
			}
		}
	}
	t.Logf("%d threads, each: %v", seen, want)
}

func freePort(t *testing.T) string {
	_, port, err := net.SplitHostPort(testkit.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// clockedOn makes exchanges on a port of loopback and asks whether they are
// counted.
func clockedOn(t *testing.T, e *exporter, port string) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		return err
	}
	defer s.Close()
	for range 3 {
		for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
			if _, err := way[0].Write([]byte("0123456789abcdef")); err != nil {
				return err
			}
			if _, err := io.ReadFull(way[1], make([]byte, 16)); err != nil {
				return err
			}
		}
	}
	_, page := e.get("/metrics")
	count := fmt.Sprintf(`grayfail_tcp_exchange_seconds_count{leg="127.0.0.1:%s"}`, port)
	line := grep(page, count)
	if line == "" || strings.TrimSpace(line) == count+" 0" {
		return fmt.Errorf("no exchange was clocked on port %s:\n%s", port, grep(page, "grayfail_tcp_exchange_seconds_count"))
	}
	return nil
}

// TestFailedDropIsSaid: it serves, and one line says that it has more rights
// than it needs.
func TestFailedDropIsSaid(t *testing.T) {
	refuse := func(...cap.Value) (privilege.Result, error) {
		return privilege.Result{Dropped: []string{"net_admin"}}, fmt.Errorf("capset: %w", os.ErrPermission)
	}
	e := startProgram(t, program{rights: rights{drop: refuse}})
	if n := strings.Count(e.log.String(), `"level":"error","error":"capset: permission denied","wanted_to_keep":[],"wanted_to_drop":["net_admin"]`); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, e.log)
	}
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}
