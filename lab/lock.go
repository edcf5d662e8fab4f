package lab

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// instanceLock is held while an instance runs. It is an abstract socket: the
// kernel drops it with the process, however that ends, and no file stays. It
// is machine-wide (per network namespace of the owner) like the names it
// guards, whichever checkout the owner runs from.
type instanceLock struct{ l *net.UnixListener }

func lockInstance(instance string) (*instanceLock, error) {
	addr := &net.UnixAddr{Name: "@" + namePrefix + instance, Net: "unix"}
	l, err := net.ListenUnix("unix", addr)
	if err == nil {
		return &instanceLock{l}, nil
	}
	if pid := listenerPID(addr); pid != 0 {
		return nil, fmt.Errorf("lab instance %q already runs (pid %d): stop it first", instance, pid)
	}
	return nil, fmt.Errorf("lock lab instance %q: %w", instance, err)
}

func (l *instanceLock) unlock() error { return l.l.Close() }

// listenerPID is the process that listens on addr, 0 when nobody does.
func listenerPID(addr *net.UnixAddr) int {
	c, err := net.DialUnix("unix", nil, addr)
	if err != nil {
		return 0
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}
