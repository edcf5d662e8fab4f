package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Namespace is the name of a network namespace, as `ip netns` lists it; "" is
// our own.
type Namespace string

// Path is the file that holds the namespace open.
func (n Namespace) Path() string {
	if n == "" {
		return "/proc/self/ns/net"
	}
	return "/run/netns/" + string(n)
}

func (n Namespace) exists() bool {
	_, err := os.Stat(n.Path())
	return err == nil
}

// Inode is the namespace's inode, the kernel's net->ns.inum.
func (n Namespace) Inode() (uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat(n.Path(), &st); err != nil {
		return 0, fmt.Errorf("namespace %s: %w", n, err)
	}
	return uint32(st.Ino), nil
}

func (n Namespace) create(ctx context.Context) error {
	if _, err := run(ctx, "ip", "netns", "add", string(n)); err != nil {
		return err
	}
	_, err := run(ctx, "ip", "-n", string(n), "link", "set", "lo", "up")
	return err
}

// remove drops the name; the kernel tears down the namespace, and with it
// interfaces, rules and queueing disciplines, once no process is left in it.
func (n Namespace) remove() error {
	if !n.exists() {
		return nil
	}
	_, err := run(context.Background(), "ip", "netns", "del", string(n))
	return err
}

// Do runs f on a thread inside the namespace. Sockets that f opens stay there.
func (n Namespace) Do(f func() error) error {
	errc := make(chan error)
	go func() { errc <- n.do(f) }()
	return <-errc
}

// do is called on a goroutine of its own: if the way back fails, the thread
// stays locked and dies with the goroutine.
func (n Namespace) do(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	if err := n.enter(); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, fmt.Errorf("leave namespace %s: %w", n, back))
	}
	runtime.UnlockOSThread()
	return err
}

// enter moves the calling, locked thread.
func (n Namespace) enter() error {
	f, err := os.Open(n.Path())
	if err != nil {
		return fmt.Errorf("namespace %s: %w", n, err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter namespace %s: %w", n, err)
	}
	return nil
}

// Listen opens a TCP listener inside the namespace.
func (n Namespace) Listen(address string) (l net.Listener, err error) {
	err = n.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

// Dial connects from inside the namespace. The address is an IP literal: a
// name would be resolved on another thread, outside.
func (n Namespace) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = n.Do(func() (err error) {
		c, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// Exec runs a command inside the namespace and returns its standard output.
func (n Namespace) Exec(ctx context.Context, name string, args ...string) (string, error) {
	return run(ctx, "nsenter", append([]string{"--net=" + n.Path(), "--", name}, args...)...)
}

// Script is Exec with text for the command's standard input.
func (n Namespace) Script(ctx context.Context, stdin, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + n.Path(), "--", name}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	return output(cmd)
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, name, args...))
}

// output runs cmd; its error carries what the command said.
func output(cmd *exec.Cmd) (string, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w (Debian package iproute2, nftables or util-linux)", err)
	}
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
