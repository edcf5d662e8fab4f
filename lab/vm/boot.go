package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"grayfail/lab/vm/internal/spec"
)

// boot starts the guest with a share that holds its job, and returns its
// results when it has turned itself off. console gets all that the kernel and
// the guest say.
func (k *kernel) boot(ctx context.Context, initramfs, share, console string) (*spec.Results, error) {
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return nil, fmt.Errorf("%w (Debian package qemu-system-x86)", err)
	}
	log, err := os.Create(console)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	export := func(path, tag, options string) string {
		return fmt.Sprintf("local,path=%s,mount_tag=%s,security_model=none,multidevs=remap%s", path, tag, options)
	}
	runtime.LockOSThread() // the death signal belongs to the starting thread
	defer runtime.UnlockOSThread()
	// Others on this machine measure times: the emulation stands back.
	cmd := exec.CommandContext(ctx, "nice", "-n", "19", qemu,
		"-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2G",
		"-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", filepath.Join(k.dir, "boot/vmlinuz-"+k.release), "-initrd", initramfs,
		// panic=-1: a panic reboots at once, and -no-reboot makes that an end.
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init",
		"-virtfs", export("/", spec.TagRoot, ",readonly=on"),
		"-virtfs", export(share, spec.TagShare, ""))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = log, log
	err = errors.Join(cmd.Run(), ctx.Err())
	var results spec.Results
	if readErr := spec.Read(share, spec.ResultsFile, &results); err == nil {
		err = readErr
	}
	if err == nil && results.Error != "" {
		err = errors.New(results.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("VM: %w\nthe console's last words:\n%s", err, tail(console, 40))
	}
	return &results, nil
}

// tail is the end of a file, for people.
func tail(path string, lines int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	b = bytes.ToValidUTF8(bytes.ReplaceAll(b, []byte("\r"), nil), []byte("?"))
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
