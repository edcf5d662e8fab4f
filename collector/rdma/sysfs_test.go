package rdma

import (
	"io/fs"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"grayfail/event"
)

// sysfs makes a file system of captured files, below dir.
func sysfs(t testing.TB, dir string, names ...string) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, name := range names {
		a, err := txtar.ParseFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			fsys[dir+f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	return fsys
}

// broken makes single files fail.
type broken struct {
	fs.FS
	errs map[string]error
}

func (b broken) Open(name string) (fs.File, error) {
	if err := b.errs[name]; err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return b.FS.Open(name)
}

func TestGIDs(t *testing.T) {
	f := files{fsys: sysfs(t, "", "6.1-rxe.txtar"), dir: "rxe0/ports/1"}
	table, ok := f.gids()
	if !ok || len(f.bad) > 0 {
		t.Fatalf("%t, %v", ok, f.bad)
	}
	want := map[netip.Addr]bool{netip.MustParseAddr("10.9.3.1"): true, netip.MustParseAddr("fd00:9::1"): true}
	for _, g := range table {
		if g.Type != "RoCE v2" || g.Netdev != "ve1" {
			t.Errorf("%+v", g)
		}
		delete(want, g.Addr)
	}
	if len(want) > 0 || len(table) != 3 { // and the link-local one
		t.Errorf("%+v", table)
	}
}

// One file that gives an error loses one value.
func TestUnreadableFiles(t *testing.T) {
	captured := sysfs(t, "", "6.1-twoport.txtar")
	const dir = "twoport0/ports/2/"
	whole := files{fsys: captured, dir: "twoport0/ports/2"}
	table, ok := whole.gids()
	if !ok || len(table) < 2 {
		t.Fatalf("%+v", table)
	}
	for _, tt := range []struct {
		file     string
		err      error
		problems int
		complete bool
		lose     func(gids []event.GID) []event.GID
	}{
		{"gid_attrs/types/1", unix.EINVAL, 0, true, func(g []event.GID) []event.GID { g[1].Type = ""; return g }},
		{"gid_attrs/ndevs/0", unix.EIO, 1, true, func(g []event.GID) []event.GID { g[0].Netdev = ""; return g }},
		{"gids/1", unix.EINVAL, 1, false, func(g []event.GID) []event.GID { return append(g[:1], g[2:]...) }},
		{"gids/1", fs.ErrNotExist, 0, true, func(g []event.GID) []event.GID { return append(g[:1], g[2:]...) }},
		{"gids/1", unix.ENODEV, 0, true, func(g []event.GID) []event.GID { return append(g[:1], g[2:]...) }},
		{"gids", unix.EACCES, 1, false, func([]event.GID) []event.GID { return nil }},
	} {
		f := files{fsys: broken{captured, map[string]error{dir + tt.file: tt.err}}, dir: "twoport0/ports/2"}
		got, ok := f.gids()
		want := tt.lose(append([]event.GID(nil), table...))
		if ok != tt.complete || len(f.bad) != tt.problems || !reflect.DeepEqual(got, want) {
			t.Errorf("%s %v: complete %t, problems %v\n got %+v\nwant %+v", tt.file, tt.err, ok, f.bad, got, want)
		}
	}
}

func TestParseRate(t *testing.T) {
	for in, want := range map[string]float64{
		"100 Gb/sec (4X EDR)": 12.5e9, "2.5 Gb/sec (1X SDR)": 312.5e6, "40 Gb/sec (4X QDR)\n": 5e9,
		"": -1, "fast": -1, "100": -1, "NaN Gb/sec": -1, "-1 Gb/sec": -1, "1e9 Gb/sec": -1, "100 Mb/sec": -1,
	} {
		got, err := parseRate(in)
		if (err != nil) != (want < 0) || (err == nil && got != want) {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
}

func TestParseState(t *testing.T) {
	for in, want := range map[string]string{"4: ACTIVE": "ACTIVE", "1: DOWN": "DOWN", "ACTIVE": "", ": x": "", "4: ": "", "": ""} {
		got, err := parseState(in)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestParseTgid(t *testing.T) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]int{
		string(status): os.Getpid(), "Name:\tx\nTgid:\t12\nPid:\t13\n": 12, "": 0, "Tgid:\tx\n": 0, "Tgid:\t0\n": 0, "Tgid:\t-4\n": 0,
	} {
		if got, ok := parseTgid(in); got*b2i(ok) != want {
			t.Errorf("%.40q: %d, %t", in, got, ok)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Whatever a file holds: no panic, and a value or an error.
func FuzzFiles(f *testing.F) {
	for _, s := range []string{"100 Gb/sec (4X EDR)\n", "4: ACTIVE\n", "0000:0000:0000:0000:0000:ffff:0a09:0301\n", "RoCE v2\n", "Tgid:\t7\n", "18446744073709551615\n", "\x00", "fe80::1%eth0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := parseRate(s); err == nil && !(v >= 0 && v < 1e18) {
			t.Errorf("rate %v of %q", v, s)
		}
		if v, err := parseState(s); err == nil && v == "" {
			t.Errorf("no state of %q", s)
		}
		if n, ok := parseTgid(s); ok && n <= 0 {
			t.Errorf("thread group %d of %q", n, s)
		}
		data := &fstest.MapFile{Data: []byte(s)}
		port := files{dir: "d/ports/1", fsys: fstest.MapFS{
			"d/ports/1/gids/0": data, "d/ports/1/gid_attrs/types/0": data, "d/ports/1/hw_counters/x": data,
		}}
		table, ok := port.gids()
		for _, g := range table {
			if !g.Addr.IsValid() || g.Addr.IsUnspecified() || g.Addr.Is4In6() || !ok {
				t.Errorf("%+v of %q", g, s)
			}
		}
		port.counters()
	})
}

func reasons(problems []event.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Reason)
	}
	return strings.Join(all, " ")
}
