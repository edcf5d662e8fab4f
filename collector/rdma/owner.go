package rdma

import (
	"io/fs"
	"strconv"
	"strings"
)

// owners finds the process of a thread. The kernel names the thread that
// opened the device (drivers/infiniband/core/restrack.c, current): whatever
// comes of it belongs to the process all the same.
type owners struct {
	proc  fs.FS
	known map[uint32]int // of one reading: numbers are used again
}

// process is the thread group of a thread; the number itself where /proc does
// not tell (hidepid, or the thread has just ended).
func (o *owners) process(thread uint32) int {
	if thread == 0 {
		return 0
	}
	if pid, ok := o.known[thread]; ok {
		return pid
	}
	pid := int(thread)
	// A thread has a folder in /proc that listings leave out (proc(5)).
	if b, err := fs.ReadFile(o.proc, strconv.Itoa(pid)+"/status"); err == nil {
		if tgid, ok := parseTgid(string(b)); ok {
			pid = tgid
		}
	}
	o.known[thread] = pid
	return pid
}

// parseTgid finds the line "Tgid:\t123" of /proc/PID/status.
func parseTgid(status string) (int, bool) {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "Tgid:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(rest))
			return n, err == nil && n > 0
		}
	}
	return 0, false
}
