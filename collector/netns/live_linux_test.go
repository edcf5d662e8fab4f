package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"grayfail/event"
	"grayfail/internal/testkit"
)

// onLeader runs functions on the process's first thread.
var onLeader = make(chan func())

func TestMain(m *testing.M) {
	runtime.LockOSThread()
	code := make(chan int)
	go func() { code <- m.Run() }()
	for {
		select {
		case f := <-onLeader:
			f()
		case c := <-code:
			os.Exit(c)
		}
	}
}

// TestOwnIsTheThreads: netlink sockets in other namespaces are made by a
// thread that enters them for a moment. If it is the first one, /proc/self
// shows another namespace meanwhile.
func TestOwnIsTheThreads(t *testing.T) {
	testkit.RequireRoot(t)
	want, err := Own()
	if err != nil {
		t.Fatal(err)
	}
	leader := make(chan error)
	back := make(chan struct{})
	onLeader <- func() {
		home, err := os.Open("/proc/thread-self/ns/net")
		if err == nil {
			err = unix.Unshare(unix.CLONE_NEWNET)
		}
		leader <- err
		<-back
		if err == nil {
			err = unix.Setns(int(home.Fd()), unix.CLONE_NEWNET)
			home.Close()
		}
		leader <- err
	}
	if err := <-leader; err != nil {
		t.Error(err)
	}
	if shown, err := inodeOf("/proc/self/ns/net"); err != nil || shown == want.Inode {
		t.Errorf("the first thread is in namespace %d, %v: it should be elsewhere", shown, err)
	}
	if got, err := Own(); err != nil || got != want {
		t.Errorf("Own = %+v, %v; want %+v", got, err, want)
	}
	close(back)
	if err := <-leader; err != nil {
		t.Error(err)
	}
}

func TestOwn(t *testing.T) {
	own, err := Own()
	if err != nil {
		t.Fatal(err)
	}
	byPID, err := ByPID(os.Getpid())
	if err != nil || byPID != own {
		t.Errorf("ByPID(self) = %+v, %v; want %+v", byPID, err, own)
	}
	h, err := own.Open()
	if err != nil || h.FD() != 0 || h.Close() != nil {
		t.Errorf("Open own: FD %d, %v", h.FD(), err)
	}
}

func TestByNameErrors(t *testing.T) {
	for name, want := range map[string]error{
		"gf-netns-no": os.ErrNotExist, "": ErrBadName, "../self": ErrBadName, "a/b": ErrBadName,
	} {
		if _, err := ByName(name); !errors.Is(err, want) {
			t.Errorf("ByName(%q): %v, want %v", name, err, want)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "left"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := byName(dir, "left"); !errors.Is(err, ErrNotNamespace) {
		t.Errorf("a plain file: %v, want ErrNotNamespace", err)
	}
}

// links lists the interfaces that a netlink socket in ns sees.
func links(t *testing.T, ns Namespace) []string {
	t.Helper()
	c, err := Dial(unix.NETLINK_ROUTE, ns)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	names, err := Links(c)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// TestDialEnters: by name and through a process, the socket sees the
// namespace's interfaces and not ours.
func TestDialEnters(t *testing.T) {
	name := testkit.Netns(t, "gf-netns-a")
	testkit.Run(t, "ip", "-n", name, "link", "add", "gfa0", "type", "veth", "peer", "name", "gfa1")
	p := testkit.Start(t, "ip", "netns", "exec", name, "sleep", "600")
	waitComm(t, p.PID(), "sleep")
	byName, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	byPID, err := ByPID(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if byPID != byName {
		t.Errorf("ByPID = %+v, ByName = %+v: a process of a named namespace has its name", byPID, byName)
	}
	want := []string{"gfa0", "gfa1", "lo"}
	for _, ns := range []Namespace{byName, {Name: "x", Inode: byName.Inode, Path: fmt.Sprintf("/proc/%d/ns/net", p.PID())}} {
		if got := links(t, ns); !slices.Equal(slices.DeleteFunc(got, isDefault), want) {
			t.Errorf("interfaces of %+v: %v, want %v", ns, got, want)
		}
	}
}

// isDefault sorts out what kernels add to every new namespace (tunnel
// fallback devices, ifb).
func isDefault(name string) bool { return name != "lo" && !strings.HasPrefix(name, "gf") }

// waitComm waits until process pid has become comm: ip-netns(8) enters the
// namespace before it executes the program.
func waitComm(t *testing.T, pid int, comm string) {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, func() error {
		if got := Comm("/proc", pid); got != comm {
			return fmt.Errorf("process %d is %q, want %q", pid, got, comm)
		}
		return nil
	})
}

// TestReusedName: a namespace made anew under the same name is another one.
func TestReusedName(t *testing.T) {
	name := testkit.Netns(t, "gf-netns-b")
	old, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	// Keep the old one alive, so that its inode cannot be given out again.
	keep, err := old.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	testkit.Run(t, "ip", "netns", "del", name)
	if _, err := old.Open(); !errors.Is(err, ErrVanished) {
		t.Errorf("Open of a removed namespace: %v", err)
	}
	testkit.Netns(t, name)
	if _, err := old.Open(); !errors.Is(err, ErrVanished) {
		t.Errorf("Open of a replaced namespace: %v", err)
	}
	if _, err := Dial(unix.NETLINK_ROUTE, old); !errors.Is(err, ErrVanished) {
		t.Errorf("Dial into a replaced namespace: %v", err)
	}
}

func TestSetNames(t *testing.T) {
	a := testkit.Netns(t, "gf-netns-c")
	s := NewSet(Config{Names: []string{a, "gf-netns-no"}})
	list, problems := s.Look(1)
	if len(list) != 2 || list[1].Name != a {
		t.Errorf("Look = %v", list)
	}
	if len(problems) != 1 || problems[0].Reason != ReasonNotFound || !strings.Contains(problems[0].Detail, `"gf-netns-no"`) {
		t.Errorf("problems = %v", problems)
	}
	testkit.Run(t, "ip", "netns", "del", a)
	if list, problems = s.Look(2); len(list) != 1 || len(problems) != 2 {
		t.Errorf("after the removal: %v, %v", list, problems)
	}
	s.Look(3)
	if got := s.Vanished(); got != 1 {
		t.Errorf("Vanished = %d, want 1", got)
	}
	testkit.Netns(t, a)
	if list, _ = s.Look(4); len(list) != 2 {
		t.Errorf("after it was made again: %v", list)
	}
	s.SetConfig(Config{})
	if list, problems = s.Look(5); len(list) != 1 || len(problems) != 0 {
		t.Errorf("after a reload without names: %v, %v", list, problems)
	}
}

// TestSetAuto: a namespace without a name is found through its process, gets
// that process's name once it is adopted, is reached through another process
// when the first ends, and is dropped and counted with the last.
func TestSetAuto(t *testing.T) {
	testkit.RequireRoot(t)
	first := testkit.Start(t, "unshare", "-n", "sleep", "600")
	waitComm(t, first.PID(), "sleep")
	target, err := ByPID(first.PID())
	if err != nil {
		t.Fatal(err)
	}
	second := testkit.Start(t, "nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", first.PID()), "tail", "-f", "/dev/null")
	waitComm(t, second.PID(), "tail")

	s := NewSet(Config{Auto: true})
	list, _ := s.Look(1)
	if !slices.ContainsFunc(list, func(ns Namespace) bool { return ns.Inode == target.Inode }) {
		t.Fatalf("Look does not offer the namespace %d of process %d: %v", target.Inode, first.PID(), list)
	}
	if got := s.Adopt(nil); len(got) != 1 {
		t.Errorf("watched before anything was found: %v", got)
	}
	watched := s.Adopt([]Owner{{Inode: target.Inode, PID: first.PID()}})
	if len(watched) != 2 || watched[1].Name != "sleep" || watched[1].Inode != target.Inode {
		t.Fatalf("watched = %v, want our own and \"sleep\"", watched)
	}
	links(t, watched[1])

	first.Stop()
	list, _ = s.Look(2) // not due by time, but the way in is gone
	if len(list) < 2 || list[1].Name != "sleep" || list[1].Path != fmt.Sprintf("/proc/%d/ns/net", second.PID()) {
		t.Fatalf("after the first process ended: %v, want the way through process %d", list, second.PID())
	}
	links(t, list[1])

	second.Stop()
	s.Look(3)
	if got := s.Adopt(nil); len(got) != 1 || s.Vanished() != 1 {
		t.Errorf("after the last process ended: watched %v, vanished %d", got, s.Vanished())
	}
}

// TestWithoutPermission: what cannot be read is a problem that says what is
// missing.
func TestWithoutPermission(t *testing.T) {
	p := testkit.Start(t, "unshare", "-n", "sleep", "600")
	waitComm(t, p.PID(), "sleep")
	var (
		list     []Namespace
		problems []event.Problem
		byPID    error
	)
	s := NewSet(Config{Auto: true})
	testkit.AsNobody(t, func() {
		list, problems = s.Look(1)
		_, byPID = ByPID(p.PID())
	})
	if len(list) == 0 || !list[0].Own() {
		t.Errorf("our own namespace is missing: %v", list)
	}
	if len(problems) != 1 || problems[0].Reason != ReasonNoPermission || !strings.Contains(problems[0].Detail, "CAP_SYS_PTRACE") {
		t.Errorf("problems = %v", problems)
	}
	if problem, bad := Problem("sleep", byPID); !bad || problem.Reason != ReasonNoPermission || !strings.Contains(problem.Detail, "CAP_SYS_ADMIN") {
		t.Errorf("ByPID: %v -> %v, %t", byPID, problem, bad)
	}
}

// TestDumpClosed: a dead connection is an error, not an empty dump.
func TestDumpClosed(t *testing.T) {
	own, err := Own()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(unix.NETLINK_ROUTE, own)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if msgs, err := Dump(c, netlink.Message{Header: netlink.Header{Type: unix.RTM_GETLINK}, Data: make([]byte, unix.SizeofIfInfomsg)}); err == nil {
		t.Errorf("Dump on a closed connection gave %d messages", len(msgs))
	}
}

// TestLinkName: each name of the list is what the single question says, in the
// socket's namespace and not in ours; none is there for an index beyond them.
func TestLinkName(t *testing.T) {
	name := testkit.Netns(t, "gf-netns-name")
	testkit.Run(t, "ip", "-n", name, "link", "add", "gfname0", "type", "veth", "peer", "name", "gfname1")
	ns, err := ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(unix.NETLINK_ROUTE, ns)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := Links(c)
	if err != nil || len(all) < 3 {
		t.Fatalf("%v, %v", all, err)
	}
	last := 0
	for index, want := range all {
		if got, err := LinkName(c, index); err != nil || got != want {
			t.Errorf("interface %d: %q, %v, want %q", index, got, err, want)
		}
		last = max(last, index)
	}
	testkit.Run(t, "ip", "-n", name, "link", "set", "gfname1", "name", "gfother")
	for index, was := range all {
		if got, err := LinkName(c, index); was == "gfname1" && (err != nil || got != "gfother") {
			t.Errorf("renamed: %q, %v", got, err)
		}
	}
	if _, err := LinkName(c, last+1000); !errors.Is(err, unix.ENODEV) {
		t.Errorf("no such interface: %v", err)
	}
}
