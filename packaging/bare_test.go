package packaging_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grayfail/internal/testkit"
)

// bare is a Debian with nothing but what is essential, unpacked for one test.
// The archive it comes from stays in the user's cache: it takes a mirror and
// half a minute to make.
type bare struct {
	t    *testing.T
	root string
}

func unpackBare(t *testing.T) *bare {
	t.Helper()
	testkit.RequireRoot(t)
	cache, err := os.UserCacheDir()
	if err != nil { // no HOME
		cache = "/var/cache"
	}
	cache = filepath.Join(cache, "grayfail")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(cache, "bookworm-essential-1.tar")
	testkit.Run(t, "./bareroot.sh", archive)
	b := &bare{t: t, root: filepath.Join(t.TempDir(), "root")}
	if err := os.Mkdir(b.root, 0o755); err != nil {
		t.Fatal(err)
	}
	// TempDir is closed to others, and the service is somebody else.
	for dir := b.root; dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Run(t, "tar", "-C", b.root, "--numeric-owner", "-xpf", archive)
	return b
}

// run runs a command in there and returns what it says.
func (b *bare) run(args ...string) string {
	b.t.Helper()
	return testkit.Run(b.t, "chroot", append([]string{b.root, "/usr/bin/env", "-i", "LC_ALL=C",
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}, args...)...)
}

func (b *bare) path(name string) string { return filepath.Join(b.root, name) }

func (b *bare) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// install brings a package in as an administrator would.
func (b *bare) install(deb string) {
	b.t.Helper()
	b.t.Cleanup(func() { _ = os.Remove(b.path("/package.deb")) })
	testkit.Run(b.t, "cp", deb, b.path("/package.deb"))
	b.run("dpkg", "-i", "/package.deb")
	if err := os.Remove(b.path("/package.deb")); err != nil {
		b.t.Fatal(err)
	}
}

// dpkgOwn are dpkg's own notes, which change with every run of it.
var dpkgOwn = []string{"/var/lib/dpkg/", "/var/log/dpkg.log", "/var/lib/dpkg"}

// files lists everything there is: type, mode, owner, size of files, target of links.
func (b *bare) files() map[string]string {
	b.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := "/" + strings.TrimPrefix(strings.TrimPrefix(path, b.root), "/")
		for _, own := range dpkgOwn {
			if strings.HasPrefix(name, own) {
				return nil
			}
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			what = fmt.Sprintf("%s %d bytes", what, info.Size())
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " -> " + target
		}
		all[name] = what
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// start runs a command line in there as systemd would: in a network namespace,
// with /proc and /sys, as a user of no name, with these capabilities and no
// way to more.
func (b *bare) start(netns string, uid int, capabilities []string, command ...string) *testkit.Daemon {
	b.t.Helper()
	add := "-all,+" + strings.Join(capabilities, ",+")
	user := fmt.Sprint(uid)
	script := `mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" && exec chroot "$0" "$@"`
	args := []string{"netns", "exec", netns, "unshare", "--mount", "--propagation", "private", "sh", "-c", script, b.root,
		"/usr/bin/setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs",
		"--inh-caps", add, "--ambient-caps", add, "--bounding-set", add, "--"}
	return testkit.Start(b.t, "ip", append(args, command...)...)
}

// get asks over loopback of a network namespace.
func get(t *testing.T, netns, path string) (string, error) {
	t.Helper()
	var body []byte
	var problem error
	testkit.InNetns(t, netns, func() error {
		problem = func() error {
			c, err := net.Dial("tcp", "127.0.0.1:10550")
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", path); err != nil {
				return err
			}
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if body, err = io.ReadAll(answer.Body); err != nil {
				return err
			}
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("GET %s: %s %s", path, answer.Status, bytes.TrimSpace(body))
			}
			return nil
		}()
		return nil
	})
	return string(body), problem
}

// exchange is one request and its reply on port 50052 of a namespace's
// loopback, which the exporter watches.
func exchange(t *testing.T, netns string) {
	t.Helper()
	testkit.InNetns(t, netns, func() error {
		l, err := net.Listen("tcp", "127.0.0.1:50052")
		if err != nil {
			return err
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		s, err := l.Accept()
		if err != nil {
			return err
		}
		defer s.Close()
		buf := make([]byte, 16)
		for range 5 {
			for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
				if _, err := way[0].Write([]byte("0123456789abcdef")); err != nil {
					return err
				}
				if _, err := io.ReadFull(way[1], buf); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// users are the accounts in there.
func (b *bare) users() string {
	return b.read("/etc/passwd") + b.read("/etc/group")
}
