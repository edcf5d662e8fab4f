package privilege_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"grayfail/internal/privilege"
	"grayfail/internal/testkit"
)

// TestMain lets the test binary be a program that gives up its capabilities:
// that cannot be taken back, so it must not happen to the tests.
func TestMain(m *testing.M) {
	if os.Getenv("GRAYFAIL_PRIVILEGE_DROP") != "" {
		os.Exit(dropAndShow())
	}
	os.Exit(m.Run())
}

func dropAndShow() int {
	r, err := privilege.Drop(cap.SYS_PTRACE, cap.NET_RAW)
	fmt.Printf("%+v %v\n", r, err)
	files, _ := filepath.Glob("/proc/self/task/*/status")
	for _, file := range files {
		status, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") {
				fmt.Print(line)
			}
		}
	}
	fmt.Println("setuid root:", runs("setpriv", "--reuid", "1", "true"))
	_, err = privilege.Drop() // what is gone is gone, and a second time is no error
	fmt.Println(err, privilege.Held(cap.SYS_PTRACE))
	return 0
}

func runs(name string, args ...string) bool { return exec.Command(name, args...).Run() == nil }

func dropped(t *testing.T, capabilities string) string {
	t.Helper()
	testkit.RequireRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Run(t, "setpriv", "--inh-caps", capabilities, "--bounding-set", capabilities,
		"env", "GRAYFAIL_PRIVILEGE_DROP=1", self)
}

func TestDrop(t *testing.T) {
	// 13 net_raw, 19 sys_ptrace; net_raw is not held, so it is not kept.
	out := dropped(t, "-all,+sys_ptrace,+net_admin,+setpcap,+setuid")
	for _, want := range []string{
		"{Kept:[sys_ptrace] Dropped:[setuid setpcap net_admin] Bounded:true} <nil>\n",
		"CapPrm:\t0000000000080000\n", "CapEff:\t0000000000080000\n", "CapBnd:\t0000000000080000\n",
		"CapInh:\t0000000000000000\n", "CapAmb:\t0000000000000000\n", "NoNewPrivs:\t1\n",
		"setuid root: false\n", "<nil> false\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Count(out, "CapEff:\t0000000000080000\n") != strings.Count(out, "CapEff:") {
		t.Errorf("a thread has other capabilities:\n%s", out)
	}
}

// TestDropWithoutSetpcap: the bounding set stays, and that is said.
func TestDropWithoutSetpcap(t *testing.T) {
	out := dropped(t, "-all,+sys_ptrace,+net_admin")
	for _, want := range []string{
		"{Kept:[sys_ptrace] Dropped:[net_admin] Bounded:false} <nil>\n",
		"CapEff:\t0000000000080000\n", "CapBnd:\t0000000000081000\n", "NoNewPrivs:\t1\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestTry: what needs a capability fails inside and works again afterwards.
func TestTry(t *testing.T) {
	testkit.RequireRoot(t)
	raw := func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	for range 20 {
		if err := privilege.Try(raw); !errors.Is(err, os.ErrPermission) {
			t.Errorf("without capabilities: %v", err)
		}
		if err := privilege.Try(raw, cap.NET_RAW); err != nil {
			t.Errorf("with the one it needs: %v", err)
		}
		if err := raw(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
	mine := errors.New("mine")
	if err := privilege.Try(func() error { return mine }); !errors.Is(err, mine) {
		t.Errorf("the error of the trial: %v", err)
	}
}
