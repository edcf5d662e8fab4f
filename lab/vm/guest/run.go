package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"grayfail/lab/vm/internal/spec"
)

// prepare finishes what an init system would have done.
func prepare(job *spec.Job) error {
	for name, value := range map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": "/tmp", "TMPDIR": "/tmp",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := mountAll([]mount{
		{"tmpfs", "/run", "tmpfs", 0, ""},
		{"devpts", "/dev/pts", "devpts", 0, ""},
		{"tmpfs", "/dev/shm", "tmpfs", 0, ""},
		{"tracefs", "/sys/kernel/tracing", "tracefs", 0, ""},
		{"bpf", "/sys/fs/bpf", "bpf", 0, ""},
	}); err != nil {
		return err
	}
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		return err
	}
	kernel := release()
	dir := filepath.Join("/lib/modules", kernel)
	if err := os.MkdirAll("/lib/modules", 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(job.KernelDir, "lib/modules", kernel), dir); err != nil {
		return err
	}
	modprobe, err := exec.LookPath("modprobe")
	if err != nil {
		return fmt.Errorf("%w (Debian package kmod)", err)
	}
	// The kernel loads what sockets and devices need by itself.
	if err := os.WriteFile("/proc/sys/kernel/modprobe", []byte(modprobe), 0); err != nil {
		return err
	}
	commands := [][]string{{"ip", "link", "set", "lo", "up"}}
	for _, m := range job.Modules {
		commands = append(commands, []string{"modprobe", m})
	}
	for _, argv := range commands {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", argv, err, out)
		}
	}
	return nil
}

// run runs one step, and ends whatever it left running.
func run(step *spec.Step) spec.Result {
	result := spec.Result{Name: step.Name, Exit: -1}
	out, err := os.Create(filepath.Join(spec.Share, step.Output))
	if err != nil {
		result.Error = err.Error()
		return result
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(context.Background(), step.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, step.Argv[0], step.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir, cmd.Env = step.Dir, append(os.Environ(), step.Env...)
	// A test binary that is asked to quit says where its goroutines are.
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGQUIT) }
	cmd.WaitDelay = step.Timeout/10 + 1
	err = cmd.Run()
	_ = unix.Kill(-1, unix.SIGKILL) // everything but init
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		result.Error = fmt.Sprintf("not done after %s", step.Timeout)
	case err == nil:
		result.Exit = 0
	case errors.As(err, &exit) && exit.Exited():
		result.Exit = exit.ExitCode()
	default:
		result.Error = err.Error()
	}
	return result
}
