package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"grayfail/lab/vm/internal/spec"
)

// mount is one line of a table, in the words of mount(2).
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

func mountAll(list []mount) error {
	for _, m := range list {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s %s on %s: %w", m.kind, m.source, m.target, err)
		}
	}
	return nil
}

const nineP = "trans=virtio,version=9p2000.L,msize=512000"

// enter makes the host's file system, below a writable layer in memory, the
// root of this process.
func enter() error {
	if err := mountAll([]mount{
		{"proc", "/proc", "proc", 0, ""},
		{"sysfs", "/sys", "sysfs", 0, ""},
		{"devtmpfs", "/dev", "devtmpfs", 0, ""},
	}); err != nil {
		return err
	}
	if err := loadPacked(); err != nil {
		return err
	}
	if err := mountAll([]mount{
		{spec.TagRoot, "/host", "9p", unix.MS_RDONLY, nineP + ",cache=loose"},
		{"tmpfs", "/layer", "tmpfs", 0, ""},
	}); err != nil {
		return err
	}
	for _, dir := range []string{"/layer/upper", "/layer/work"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := mountAll([]mount{
		{"overlay", "/newroot", "overlay", 0, "lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work"},
		{spec.TagShare, "/newroot" + spec.Share, "9p", 0, nineP},
		{"/proc", "/newroot/proc", "", unix.MS_MOVE, ""},
		{"/sys", "/newroot/sys", "", unix.MS_MOVE, ""},
		{"/dev", "/newroot/dev", "", unix.MS_MOVE, ""},
	}); err != nil {
		return err
	}
	// What switch_root(8) does.
	return errors.Join(unix.Chdir("/newroot"), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), unix.Chdir("/"))
}

// loadPacked loads the modules of the initramfs in the order of /modules.
func loadPacked() error {
	list, err := os.ReadFile("/modules")
	if err != nil {
		return err
	}
	for path := range strings.FieldsSeq(string(list)) {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", path, err)
		}
	}
	return nil
}
