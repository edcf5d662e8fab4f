package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// place is where everything is kept: .lab/vm below the module's root.
type place struct {
	module string // root of the Go module
	dir    string
	lock   *os.File
}

// open finds the place and waits until no other VM uses it.
func open(ctx context.Context) (*place, error) {
	out, err := command(ctx, "", "go", "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	mod := strings.TrimSpace(out)
	if mod == "" || mod == os.DevNull {
		return nil, errors.New("not inside a Go module")
	}
	p := &place{module: filepath.Dir(mod), dir: filepath.Join(filepath.Dir(mod), ".lab", "vm")}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	p.lock, err = os.Create(filepath.Join(p.dir, "lock"))
	if err != nil {
		return nil, err
	}
	if err := flock(ctx, p.lock); err != nil {
		_ = p.lock.Close()
		return nil, fmt.Errorf("another VM runs: %w", err)
	}
	return p, nil
}

func (p *place) close() { _ = p.lock.Close() }

// flock waits for the lock, or for ctx.
func flock(ctx context.Context, f *os.File) error {
	got := make(chan error, 1)
	// A duplicate: closing f must not pull the descriptor from under the call.
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		return err
	}
	go func() {
		defer unix.Close(fd)
		for {
			if err := unix.Flock(fd, unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
				got <- err
				return
			}
		}
	}()
	select {
	case err := <-got:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// command runs a program in dir and returns what it printed. It dies with
// this process.
func command(ctx context.Context, dir string, argv ...string) (string, error) {
	runtime.LockOSThread() // the death signal belongs to the starting thread
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(argv, " "), errors.Join(err, ctx.Err()), out.String(), said.String())
	}
	return out.String(), nil
}
