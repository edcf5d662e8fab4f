package netns

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

// fakeProc makes a /proc with the given processes and their namespaces.
func fakeProc(t *testing.T, processes map[int]uint32) string {
	t.Helper()
	dir := t.TempDir()
	for pid, inode := range processes {
		p := filepath.Join(dir, strconv.Itoa(pid))
		if err := os.MkdirAll(filepath.Join(p, "ns"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("net:["+strconv.FormatUint(uint64(inode), 10)+"]", filepath.Join(p, "ns/net")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p, "comm"), []byte("proc"+strconv.Itoa(pid)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestScanGroupsByNamespace(t *testing.T) {
	dir := fakeProc(t, map[int]uint32{10: 100, 7: 100, 12: 200})
	// What else is in /proc, and a process that ended while it was read.
	for _, name := range []string{"self", "0", "-3", "99/ns"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := scanProc(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint32]found{
		100: {7, filepath.Join(dir, "7/ns/net")},
		200: {12, filepath.Join(dir, "12/ns/net")},
	}
	if diff := cmp.Diff(want, got.namespaces, cmp.AllowUnexported(found{})); diff != "" {
		t.Error(diff)
	}
	if got.processes != 3 || got.denied != 0 {
		t.Errorf("processes %d denied %d, want 3 and 0", got.processes, got.denied)
	}
}

func TestComm(t *testing.T) {
	dir := fakeProc(t, map[int]uint32{7: 1})
	if got := Comm(dir, 7); got != "proc7" {
		t.Errorf("Comm = %q", got)
	}
	if got := Comm(dir, 8); got != "" {
		t.Errorf("Comm of no process = %q", got)
	}
	if got := processName(dir, 8); got != "pid:8" {
		t.Errorf("processName of no process = %q", got)
	}
}

// TestCandidatesGoRound: with more namespaces than fit, every walk offers the
// next ones, so that all are looked at in turn.
func TestCandidatesGoRound(t *testing.T) {
	processes := make(map[int]uint32)
	for i := range 10 {
		processes[i+1] = uint32(1000 + i)
	}
	s := NewSet(Config{Auto: true, Max: 4, procDir: fakeProc(t, processes), runDir: t.TempDir()})
	seen := make(map[uint32]int)
	for walk := range 5 {
		list, problems := s.Look(int64(walk) * int64(s.cfg.ScanEvery))
		if len(problems) != 0 {
			t.Fatalf("problems: %v", problems)
		}
		if len(list) != 1+4 || !list[0].Own() {
			t.Fatalf("walk %d offers %v, want our own and four", walk, list)
		}
		for _, ns := range list[1:] {
			seen[ns.Inode]++
		}
	}
	for pid, inode := range processes {
		if seen[inode] != 2 {
			t.Errorf("namespace %d of process %d offered %d times in 5 walks of 4, want 2", inode, pid, seen[inode])
		}
	}
}

func TestLookWalksOnlyWhenDue(t *testing.T) {
	s := NewSet(Config{Auto: true, procDir: fakeProc(t, map[int]uint32{1: 1000}), runDir: t.TempDir()})
	const second = int64(1e9)
	for _, step := range []struct {
		at   int64
		want int // namespaces besides our own
	}{
		{100 * second, 1}, {101 * second, 0}, {104 * second, 0}, {105 * second, 1},
		{50 * second, 1}, // the clock was set back
		{51 * second, 0},
	} {
		list, _ := s.Look(step.at)
		if got := len(list) - 1; got != step.want {
			t.Errorf("at %d s: %d candidates, want %d", step.at/second, got, step.want)
		}
	}
}

func TestAdoptBounds(t *testing.T) {
	s := NewSet(Config{Auto: true, Max: 2, procDir: fakeProc(t, map[int]uint32{1: 1001, 2: 1002, 3: 1003}), runDir: t.TempDir()})
	s.Look(1)
	owners := []Owner{{Inode: 1001, PID: 1}, {Inode: 1002}, {Inode: 1003, PID: 3}, {Inode: 9999, PID: 4}}
	var names []string
	for _, ns := range s.Adopt(owners) {
		names = append(names, ns.Name)
	}
	if diff := cmp.Diff([]string{"", "proc1", "proc2"}, names); diff != "" {
		t.Error(diff)
	}
	if got := s.Overflow(); got != 1 {
		t.Errorf("Overflow = %d, want 1", got)
	}
}

func TestAdoptNeedsAuto(t *testing.T) {
	s := NewSet(Config{procDir: fakeProc(t, map[int]uint32{1: 1001}), runDir: t.TempDir()})
	s.Look(1)
	if got := s.Adopt([]Owner{{Inode: 1001, PID: 1}}); len(got) != 1 {
		t.Errorf("watched without auto: %v", got)
	}
}

// TestTwoOfOneName: two containers that run the same program stay apart, and
// the first keeps its name.
func TestTwoOfOneName(t *testing.T) {
	dir := fakeProc(t, map[int]uint32{1: 1001, 2: 1002})
	for _, pid := range []string{"1", "2"} {
		if err := os.WriteFile(filepath.Join(dir, pid, "comm"), []byte("rpc-server\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := NewSet(Config{Auto: true, procDir: dir, runDir: t.TempDir()})
	s.Look(1)
	s.Adopt([]Owner{{Inode: 1001, PID: 1}})
	watched := s.Adopt([]Owner{{Inode: 1001, PID: 1}, {Inode: 1002, PID: 2}})
	got := map[uint32]string{}
	for _, ns := range watched[1:] {
		got[ns.Inode] = ns.Name
	}
	if diff := cmp.Diff(map[uint32]string{1001: "rpc-server", 1002: "rpc-server:2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOwnersOf(t *testing.T) {
	socket := func(netns uint32, inode uint32, pid int) event.TCPSocket {
		return event.TCPSocket{Inode: inode, Flow: event.Flow{NetnsInode: netns, PID: pid}}
	}
	got := OwnersOf([]event.TCPSocket{
		socket(3, 31, 0), socket(1, 11, 0), socket(1, 12, 7), socket(1, 13, 8), socket(2, 0, 0),
	})
	if diff := cmp.Diff([]Owner{{Inode: 1, PID: 7}, {Inode: 3}}, got); diff != "" {
		t.Error(diff)
	}
}
