package vm

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bootModules reach the host's files and lay a writable layer over them.
var bootModules = []string{"virtio_pci", "9pnet_virtio", "9p", "overlay"}

// initramfs writes the first file system of the guest: the program guest as
// /init, the modules it needs and their order in /modules.
func (k *kernel) initramfs(ctx context.Context, guest, path string) error {
	var list []string
	for _, name := range bootModules {
		out, err := command(ctx, "", "modprobe", "-d", k.dir, "-S", k.release, "--show-depends", name)
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			// "insmod PATH", or "builtin NAME" for what the kernel has anyway.
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "insmod" && !slices.Contains(list, f[1]) {
				list = append(list, f[1])
			}
		}
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	zip, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	a := archive{w: zip}
	a.file("init", guest, 0o755)
	var names strings.Builder
	for i, module := range list {
		name := fmt.Sprintf("%02d-%s", i, filepath.Base(module))
		a.file(name, module, 0o644)
		fmt.Fprintf(&names, "/%s\n", name)
	}
	a.data("modules", []byte(names.String()), 0o644)
	a.data("TRAILER!!!", nil, 0)
	if a.err == nil {
		a.err = zip.Close()
	}
	if a.err == nil {
		a.err = out.Close()
	}
	return a.err
}

// archive writes regular files of the root directory in the "newc" format
// (Documentation/driver-api/early-userspace/buffer-format.rst). The first
// error stays.
type archive struct {
	w     io.Writer
	inode int
	err   error
}

func (a *archive) file(name, path string, mode fs.FileMode) {
	if a.err != nil {
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		a.err = err
		return
	}
	a.data(name, b, mode)
}

func (a *archive) data(name string, b []byte, mode fs.FileMode) {
	if a.err != nil {
		return
	}
	const regular = 0o100000
	a.inode++
	head := "070701"
	for _, field := range []int{
		a.inode, regular | int(mode), 0, 0, 1, 0, len(b), 0, 0, 0, 0, len(name) + 1, 0,
	} {
		head += fmt.Sprintf("%08X", field)
	}
	pad := func(n int) string { return "\x00\x00\x00"[:-n&3] }
	head += name + "\x00"
	head += pad(len(head))
	_, a.err = io.WriteString(a.w, head+string(b)+pad(len(b)))
}
