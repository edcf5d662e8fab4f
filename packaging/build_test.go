package packaging_test

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"grayfail/internal/testkit"
)

// The stamp of a test build: what matters is that both get the same.
var stamp = []string{"VERSION=v1.2.3-4-gabcdef0", "REVISION=abcdef0", "DATE=2026-01-02T03:04:05+00:00"}

const version = "1.2.3+4.gabcdef0" // as Debian sorts it

// dist builds what make dist builds, from the checkout at dir into out.
func dist(dir, out string, environment ...string) error {
	args := append([]string{"-C", dir, "dist", "DIST=" + out}, stamp...)
	cmd := exec.Command("make", append(args, "SOURCE_DATE_EPOCH=1767323045")...)
	cmd.Env = append(os.Environ(), environment...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make dist: %w\n%s", err, said)
	}
	return nil
}

// built makes the packages of this checkout once for all tests, in a folder
// that TestMain removes.
var built = sync.OnceValues(func() (string, error) {
	out := filepath.Join(os.Getenv("GRAYFAIL_PACKAGING_TMP"), "dist")
	return out, dist("..", out)
})

func TestMain(m *testing.M) {
	tmp, err := os.MkdirTemp("", "grayfail-packaging-")
	if err != nil {
		panic(err)
	}
	os.Setenv("GRAYFAIL_PACKAGING_TMP", tmp)
	code := m.Run()
	os.RemoveAll(tmp)
	os.Exit(code)
}

func packages(t *testing.T) string {
	t.Helper()
	out, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func deb(t *testing.T, arch string) string {
	t.Helper()
	return filepath.Join(packages(t), "grayfail-exporter_"+version+"_"+arch+".deb")
}

func TestBinariesAreStatic(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		f, err := elf.Open(filepath.Join(packages(t), "grayfail_exporter_linux_"+arch))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Machine != machine {
			t.Errorf("%s: built for %s", arch, f.Machine)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s: %s: linked dynamically", arch, p.Type)
			}
		}
	}
}

// TestReproducible builds a second time: in a copy of the checkout in another
// folder, without git, with another umask, time zone and language.
func TestReproducible(t *testing.T) {
	first := packages(t)
	tree, out := filepath.Join(t.TempDir(), "another", "place"), t.TempDir()
	copyCheckout(t, tree)
	if err := dist(tree, out, "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "HOME="+os.Getenv("HOME")); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Error(err)
			continue
		}
		files++
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
			t.Errorf("%s: sha256 %s, then %s", name, sum, got)
		}
		t.Logf("%s  %s, twice", sum, name)
	}
	if files != 4 {
		t.Errorf("%d files are the same, want 2 binaries and 2 packages", files)
	}
}

// copyCheckout copies what git knows or would add, with other modes and times.
func copyCheckout(t *testing.T, tree string) {
	t.Helper()
	names := testkit.Run(t, "git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimRight(names, "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) { // deleted, and not yet committed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o700
		}
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
	}
}
