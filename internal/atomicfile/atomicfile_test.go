package atomicfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"grayfail/internal/atomicfile"
	"grayfail/internal/testkit"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for _, content := range []string{"first and long", "next", ""} {
		if err := atomicfile.Write(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != content {
			t.Errorf("%q, want %q", got, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What a kill left of the file before is no obstacle, and a link in its place
// leads nowhere.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "state"), filepath.Join(dir, "victim")
	if err := os.WriteFile(path+".new", bytes.Repeat([]byte("x"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("good")); err != nil || read(t, path) != "good" {
		t.Fatal(err, read(t, path))
	}
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("evil")); err == nil {
		t.Error("a link was followed")
	}
	if read(t, victim) != "mine" || read(t, path) != "good" {
		t.Errorf("victim %q, state %q", read(t, victim), read(t, path))
	}
}

// A disk that fills up in the middle leaves the old file.
func TestDiskFull(t *testing.T) {
	testkit.RequireRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "state")
	if err := atomicfile.Write(path, []byte("good")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, make([]byte, 1<<20)); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v, want ENOSPC", err)
	}
	if got := read(t, path); got != "good" {
		t.Errorf("%d bytes are left of the old file", len(got))
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("next")); !errors.Is(err, unix.EROFS) {
		t.Errorf("error %v, want EROFS", err)
	}
}
