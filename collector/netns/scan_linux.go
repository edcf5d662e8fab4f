package netns

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

// found is one namespace that processes run in.
type found struct {
	pid  int // lowest process id in it: usually the container's first process
	path string
}

// scan is what one walk over /proc saw.
type scan struct {
	namespaces map[uint32]found
	processes  int
	denied     int // processes whose namespace we may not read
}

// scanProc groups the running processes by network namespace. A process that
// ends meanwhile is skipped.
func scanProc(proc string) (scan, error) {
	s := scan{namespaces: make(map[uint32]found)}
	dir, err := os.Open(proc)
	if err != nil {
		return s, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return s, err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid <= 0 {
			continue
		}
		path := filepath.Join(proc, name, "ns/net")
		target, err := os.Readlink(path)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				s.processes++
				s.denied++
			}
			continue
		}
		s.processes++
		inode, ok := parseLink(target)
		if !ok {
			continue
		}
		if first, known := s.namespaces[inode]; !known || pid < first.pid {
			s.namespaces[inode] = found{pid, path}
		}
	}
	return s, nil
}

// runNames maps inodes to the names ip-netns(8) gave them. It reads with
// fstatat only: a file that is no namespace has an inode of another
// filesystem, so its device is compared with that of /proc/self/ns/net.
func runNames(dir string) map[uint32]string {
	self, err := stat("/proc/self/ns/net")
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // nobody has used ip-netns(8) here
	}
	names := make(map[uint32]string, len(entries))
	for _, e := range entries {
		st, err := stat(filepath.Join(dir, e.Name()))
		if err != nil || st.Dev != self.Dev {
			continue
		}
		// ReadDir sorts, so of two names for one namespace the first stays.
		if _, taken := names[uint32(st.Ino)]; !taken {
			names[uint32(st.Ino)] = e.Name()
		}
	}
	return names
}

// Comm is a process's name (PROC/PID/comm), made fit for a label; "" when the
// process is gone.
func Comm(proc string, pid int) string {
	comm, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return cleanName(strings.TrimSuffix(string(comm), "\n"))
}

// processName is Comm, or "pid:N" without it.
func processName(proc string, pid int) string {
	return cmp.Or(Comm(proc, pid), "pid:"+strconv.Itoa(pid))
}

// cleanName bounds a name that a process chose for itself.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	// TASK_COMM_LEN is 16 with its NUL; kernel workers may show more.
	if len(name) > 32 {
		name = strings.ToValidUTF8(name[:32], "")
	}
	return name
}
