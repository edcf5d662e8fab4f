package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// RunDir is where ip-netns(8) keeps named namespaces.
const RunDir = "/run/netns"

// Handle is an open namespace. Close it soon: it keeps the namespace alive.
type Handle struct{ file *os.File }

// FD is the descriptor for netlink.Config.NetNS and setns(2); 0 means our own
// namespace, which is also what netlink.Config takes 0 for.
func (h Handle) FD() int {
	if h.file == nil {
		return 0
	}
	return int(h.file.Fd())
}

// Close releases the namespace.
func (h Handle) Close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}

// Open opens the namespace and makes sure that it is still the same one: else
// the error is ErrVanished.
func (n Namespace) Open() (Handle, error) {
	if n.Own() {
		return Handle{}, nil
	}
	f, inode, err := open(n.Path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrNotNamespace) || errors.Is(err, unix.ESRCH) {
			return Handle{}, &Error{n.Name, ErrVanished}
		}
		return Handle{}, &Error{n.Name, err}
	}
	if inode != n.Inode {
		f.Close()
		return Handle{}, &Error{n.Name, ErrVanished}
	}
	return Handle{f}, nil
}

// open opens a namespace file and reads its inode.
func open(path string) (*os.File, uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	kind, err := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_NSTYPE) // since 4.11
	if err != nil || kind != unix.CLONE_NEWNET {
		f.Close()
		return nil, 0, fmt.Errorf("%s: %w", path, ErrNotNamespace)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, 0, &os.PathError{Op: "fstat", Path: path, Err: err}
	}
	return f, uint32(st.Ino), nil
}

// inodeOf opens a namespace file only to read its inode.
func inodeOf(path string) (uint32, error) {
	f, inode, err := open(path)
	if err != nil {
		return 0, err
	}
	return inode, f.Close()
}

// Own is the namespace this process runs in. The thread is asked, not the
// process: /proc/self shows the first thread, which may at this moment be
// inside another namespace to open a socket there (a goroutine never runs on
// such a thread).
func Own() (Namespace, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	inode, err := inodeOf("/proc/thread-self/ns/net")
	if err != nil {
		return Namespace{}, &Error{"", err}
	}
	return Namespace{Inode: inode}, nil
}

// ByName finds a namespace made by ip-netns(8).
func ByName(name string) (Namespace, error) { return byName(RunDir, name) }

func byName(dir, name string) (Namespace, error) {
	if !validName(name) {
		return Namespace{}, &Error{name, ErrBadName}
	}
	path := filepath.Join(dir, name)
	inode, err := inodeOf(path)
	if err != nil {
		return Namespace{}, &Error{name, err}
	}
	return Namespace{Name: name, Inode: inode, Path: path}, nil
}

// ByPID finds the namespace a process runs in. Its name is the one it has in
// /run/netns, else the process's name; our own namespace is returned as such.
func ByPID(pid int) (Namespace, error) {
	own, err := Own()
	if err != nil || pid == os.Getpid() {
		return own, err
	}
	path := filepath.Join("/proc", strconv.Itoa(pid), "ns/net")
	inode, err := inodeOf(path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH):
		return Namespace{}, &Error{processName("/proc", pid), ErrVanished}
	case err != nil:
		return Namespace{}, &Error{processName("/proc", pid), err}
	case inode == own.Inode:
		return own, nil
	}
	if name, ok := runNames(RunDir)[inode]; ok {
		return Namespace{Name: name, Inode: inode, Path: filepath.Join(RunDir, name)}, nil
	}
	return Namespace{Name: processName("/proc", pid), Inode: inode, Path: path}, nil
}
