package join

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Process is what is known of a process. Whatever could not be read is as if
// it were in order: a reason is concluded, not guessed.
type Process struct {
	// Limited: RLIMIT_MEMLOCK holds for it and both numbers are known. The
	// kernel exempts who has CAP_IPC_LOCK in the first user namespace
	// (drivers/infiniband/core/umem.c, ib_umem_get).
	Limited bool
	// MemlockBytes is the soft limit, PinnedBytes what is pinned now (VmPin).
	MemlockBytes, PinnedBytes uint64
	// Device is the only one its environment allows, "" for all.
	Device string
	// NoRDMA: its environment forbids RDMA.
	NoRDMA bool
	// NoDevices: it sees no node in /dev/infiniband.
	NoDevices bool
}

// ReadProcess reads a process from a /proc file system (os.DirFS("/proc")).
// The limits of any process can be read; environment and devices need
// CAP_SYS_PTRACE where it is another user's.
func ReadProcess(proc fs.FS, pid int) Process {
	dir := strconv.Itoa(pid)
	read := func(name string) string {
		b, err := fs.ReadFile(proc, dir+"/"+name)
		if err != nil {
			return ""
		}
		return string(b)
	}
	var p Process
	status := read("status")
	pinned, pinnedKnown := parsePinned(status)
	limit, limitKnown := parseMemlock(read("limits"))
	exempt := mayLock(status) && firstUserNamespace(read("uid_map"))
	if pinnedKnown && limitKnown && !exempt {
		p.Limited, p.MemlockBytes, p.PinnedBytes = true, limit, pinned
	}
	p.Device, p.NoRDMA = parseEnvironment(read("environ"))
	p.NoDevices = noDevices(proc, dir)
	return p
}

// parsePinned finds "VmPin:\t    6400 kB" in /proc/PID/status.
func parsePinned(status string) (bytes uint64, ok bool) {
	for line := range strings.Lines(status) {
		if rest, found := strings.CutPrefix(line, "VmPin:"); found {
			number, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
			n, err := strconv.ParseUint(number, 10, 54)
			return n << 10, err == nil && unit == "kB"
		}
	}
	return 0, false
}

// parseMemlock finds the soft limit in /proc/PID/limits:
// "Max locked memory         8388608              8388608              bytes".
// An unlimited one is no limit that is known.
func parseMemlock(limits string) (bytes uint64, ok bool) {
	for line := range strings.Lines(limits) {
		if rest, found := strings.CutPrefix(line, "Max locked memory"); found {
			words := strings.Fields(rest)
			if len(words) != 3 || words[2] != "bytes" {
				return 0, false
			}
			n, err := strconv.ParseUint(words[0], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// mayLock finds CAP_IPC_LOCK (14) in "CapEff:\t000001ffffffffff".
func mayLock(status string) bool {
	for line := range strings.Lines(status) {
		if rest, found := strings.CutPrefix(line, "CapEff:"); found {
			n, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			return err != nil || n&(1<<14) != 0
		}
	}
	return true // not known to be limited
}

// firstUserNamespace says whether /proc/PID/uid_map is that of the first user
// namespace, which maps everything onto itself; an unreadable one may be.
func firstUserNamespace(uidMap string) bool {
	words := strings.Fields(uidMap)
	return len(words) == 0 || (len(words) == 3 && words[0] == "0" && words[1] == "0" && words[2] == "4294967295")
}

// parseEnvironment reads /proc/PID/environ: "NAME=value" ended by NUL.
func parseEnvironment(environ string) (device string, noRDMA bool) {
	for entry := range strings.SplitSeq(environ, "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case envDevice:
			device = value
		case envNoRDMA:
			noRDMA = value != "" && value != "0"
		}
	}
	return device, noRDMA
}

// noDevices says whether the process, in its own root, sees no node of
// ib_uverbs.
func noDevices(proc fs.FS, dir string) bool {
	dev := path.Join(dir, "root", "dev")
	if _, err := fs.Stat(proc, dev); err != nil {
		return false // not ours to see
	}
	entries, err := fs.ReadDir(proc, path.Join(dev, "infiniband"))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "uverbs") {
			return false
		}
	}
	return true
}
