package sockdiag

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// proc is a fake /proc.
type proc struct {
	t   *testing.T
	dir string
}

func newProc(t *testing.T) proc { return proc{t, t.TempDir()} }

func (p proc) process(pid int, inodes ...int) {
	p.t.Helper()
	dir := filepath.Join(p.dir, strconv.Itoa(pid))
	if err := os.RemoveAll(dir); err != nil {
		p.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "comm"), fmt.Appendf(nil, "proc%d\n", pid), 0o644); err != nil {
		p.t.Fatal(err)
	}
	for i, target := range []string{"/dev/null", "pipe:[77]", "anon_inode:[eventpoll]"} {
		p.link(dir, i, target)
	}
	for i, inode := range inodes {
		p.link(dir, 3+i, fmt.Sprintf("socket:[%d]", inode))
	}
}

func (p proc) link(dir string, fd int, target string) {
	p.t.Helper()
	if err := os.Symlink(target, filepath.Join(dir, "fd", strconv.Itoa(fd))); err != nil {
		p.t.Fatal(err)
	}
}

func (p proc) kill(pid int) { os.RemoveAll(filepath.Join(p.dir, strconv.Itoa(pid))) }

const second = int64(time.Second)

// TestOwnersTimeline: who owns which socket, as processes come and go.
func TestOwnersTimeline(t *testing.T) {
	p := newProc(t)
	p.process(10, 100, 101)
	p.process(20, 200)
	if err := os.MkdirAll(filepath.Join(p.dir, "self"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := newOwners(p.dir)
	for _, step := range []struct {
		at     int64
		do     func()
		inodes []uint32
		want   map[uint32]int // pids
		why    string
	}{
		{at: 1000, inodes: []uint32{100, 101, 200}, want: map[uint32]int{100: 10, 101: 10, 200: 20}, why: "first look"},
		{at: 1001, do: func() { p.process(20, 200, 201) }, inodes: []uint32{100, 200, 201},
			want: map[uint32]int{100: 10, 200: 20, 201: 20}, why: "a known process opens another: no walk is needed"},
		{at: 1002, do: func() { p.process(30, 300) }, inodes: []uint32{100, 300},
			want: map[uint32]int{100: 10}, why: "an unknown process: the next walk is not due"},
		{at: 1005, inodes: []uint32{100, 300}, want: map[uint32]int{100: 10, 300: 30}, why: "now it is"},
		{at: 1030, do: func() { p.process(10); p.process(40, 100) }, inodes: []uint32{100, 300},
			want: map[uint32]int{100: 10, 300: 30}, why: "passed on, still believed"},
		{at: 1070, inodes: []uint32{100, 300}, want: map[uint32]int{100: 40, 300: 30}, why: "belief has ended"},
		{at: 1100, do: func() { p.kill(30) }, inodes: []uint32{100}, want: map[uint32]int{100: 40}, why: "closed: forgotten"},
		{at: 1200, inodes: []uint32{100, 300}, want: map[uint32]int{100: 40}, why: "nobody has it"},
	} {
		if step.do != nil {
			step.do()
		}
		o.resolve(step.at*second, step.inodes)
		for _, inode := range step.inodes {
			if got := o.byInode[inode].pid; got != step.want[inode] {
				t.Errorf("at %d (%s): inode %d has owner %d, want %d", step.at, step.why, inode, got, step.want[inode])
			}
		}
		if len(o.byInode) > len(step.inodes) || len(o.missing) > len(step.inodes) {
			t.Errorf("at %d: %d owners and %d missing for %d sockets", step.at, len(o.byInode), len(o.missing), len(step.inodes))
		}
	}
	if got := o.byInode[100].comm; got != "proc40" {
		t.Errorf("comm = %q", got)
	}
}

// TestOwnersWalkIsRare: a socket that nobody owns does not make every reading
// walk over all processes.
func TestOwnersWalkIsRare(t *testing.T) {
	p := newProc(t)
	p.process(10, 100)
	o := newOwners(p.dir)
	walks := 0
	last := int64(-1)
	for at := int64(0); at < 200; at++ {
		o.resolve((1000+at)*second, []uint32{100, 999})
		if o.walkNS != last {
			walks, last = walks+1, o.walkNS
		}
	}
	if walks < 3 || walks > 5 {
		t.Errorf("%d walks in 200 s for one socket without an owner, want one a minute", walks)
	}
}

func TestSocketInode(t *testing.T) {
	for target, want := range map[string]uint32{
		"socket:[12]": 12, "socket:[4294967295]": 4294967295,
		"socket:[4294967296]": 0, "socket:[]": 0, "socket:[1": 0, "pipe:[12]": 0, "": 0,
	} {
		if got, ok := socketInode(target); got != want && ok {
			t.Errorf("socketInode(%q) = %d", target, got)
		} else if ok != (want != 0) {
			t.Errorf("socketInode(%q): ok is %t", target, ok)
		}
	}
}
