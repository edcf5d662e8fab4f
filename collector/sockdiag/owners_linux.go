package sockdiag

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"grayfail/collector/netns"
)

const (
	// ownerTTL is how long an owner is believed: a socket can be passed on.
	ownerTTL = int64(60 * time.Second)
	// walkEvery bounds how often all of /proc/*/fd is read.
	walkEvery = int64(5 * time.Second)
)

type owner struct {
	pid     int
	comm    string
	untilNS int64
}

// owners finds the process that holds a socket by the socket's inode. It
// first asks the processes known to own watched sockets, and walks over all
// others only when one is missing, at most every walkEvery.
type owners struct {
	proc    string
	byInode map[uint32]owner
	walked  bool
	walkNS  int64
	// missing are the inodes that walks did not find, denied the processes
	// that the last walk could not look into.
	missing map[uint32]missed
	denied  int
}

// missed is when walks did not find an inode.
type missed struct{ firstNS, lastNS int64 }

func newOwners(proc string) *owners {
	return &owners{proc: proc, byInode: make(map[uint32]owner), missing: make(map[uint32]missed)}
}

// resolve finds the owners of the given socket inodes and forgets all others.
func (o *owners) resolve(nowNS int64, inodes []uint32) {
	need := make(map[uint32]bool)
	wanted := make(map[uint32]bool, len(inodes))
	var known []int
	for _, inode := range inodes {
		wanted[inode] = true
		own, have := o.byInode[inode]
		if have {
			known = append(known, own.pid)
		}
		if !have || nowNS >= own.untilNS || nowNS < own.untilNS-ownerTTL {
			need[inode] = true
		}
	}
	for inode, own := range o.byInode {
		if !wanted[inode] {
			known = append(known, own.pid)
			delete(o.byInode, inode)
		}
	}
	for inode := range o.missing {
		if !wanted[inode] {
			delete(o.missing, inode)
		}
	}
	if len(need) == 0 {
		return
	}
	slices.Sort(known)
	for _, pid := range slices.Compact(known) {
		o.look(nowNS, pid, need)
	}
	for inode := range need {
		delete(o.byInode, inode) // its owner no longer holds it
	}
	if o.walkDue(nowNS, need) {
		o.walk(nowNS, need)
	}
}

// walkDue says whether a walk may find something: an inode that is new since
// the last one, or one that was missing for ownerTTL.
func (o *owners) walkDue(nowNS int64, need map[uint32]bool) bool {
	if len(need) == 0 || (o.walked && nowNS >= o.walkNS && nowNS-o.walkNS < walkEvery) {
		return false
	}
	for inode := range need {
		m, known := o.missing[inode]
		if !known || nowNS < m.lastNS || nowNS-m.lastNS >= ownerTTL {
			return true
		}
	}
	return false
}

// walk looks into every process.
func (o *owners) walk(nowNS int64, need map[uint32]bool) {
	o.walked, o.walkNS, o.denied = true, nowNS, 0
	for _, pid := range processes(o.proc) {
		if len(need) == 0 {
			break
		}
		o.look(nowNS, pid, need)
	}
	for inode := range need {
		m, known := o.missing[inode]
		if !known {
			m.firstNS = nowNS
		}
		m.lastNS = nowNS
		o.missing[inode] = m
	}
}

// hidden counts the inodes whose owner is kept from us. With CAP_SYS_PTRACE
// few processes are, so an inode counts only when a walk a minute later missed
// it again: else its socket was probably just being closed.
func (o *owners) hidden(mayTrace bool) (n int) {
	if o.denied == 0 {
		return 0
	}
	for _, m := range o.missing {
		if !mayTrace || m.lastNS-m.firstNS >= ownerTTL {
			n++
		}
	}
	return n
}

// look takes from need what process pid holds.
func (o *owners) look(nowNS int64, pid int, need map[uint32]bool) {
	dir := filepath.Join(o.proc, strconv.Itoa(pid), "fd")
	f, err := os.Open(dir)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			o.denied++
		}
		return
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return // the process ended
	}
	for _, name := range names {
		target, err := os.Readlink(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if inode, ok := socketInode(target); ok && need[inode] {
			delete(need, inode)
			delete(o.missing, inode)
			o.byInode[inode] = owner{pid, netns.Comm(o.proc, pid), nowNS + ownerTTL}
		}
	}
}

// processes lists the process ids in /proc, oldest number first.
func processes(proc string) []int {
	f, err := os.Open(proc)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// socketInode reads the target of a /proc/PID/fd link: "socket:[12345]".
func socketInode(target string) (uint32, bool) {
	digits, ok := strings.CutPrefix(target, "socket:[")
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, "]")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil
}
