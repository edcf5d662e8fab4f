package rdma

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"grayfail/event"
)

// portDir is the folder of a port below /sys/class/infiniband.
func portDir(device string, port int) string {
	return path.Join(device, "ports", strconv.Itoa(port))
}

// files reads small files of one folder. What cannot be read is noted and
// loses nothing else; what is absent is absent: drivers leave out what they do
// not have.
type files struct {
	fsys fs.FS
	dir  string
	bad  []error
}

// text is the content of a file without its newline; "" when it is absent or
// cannot be read.
func (f *files) text(name string) string {
	b, err := fs.ReadFile(f.fsys, path.Join(f.dir, name))
	if err != nil {
		f.note(err)
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(b)), "_")
}

func (f *files) note(err error) {
	// ENODEV: the device was removed between open and read.
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
		f.bad = append(f.bad, err)
	}
}

// value parses the content of a file that is there.
func value[T any](f *files, name string, parse func(string) (T, error)) T {
	var zero T
	s := f.text(name)
	if s == "" {
		return zero
	}
	v, err := parse(s)
	if err != nil {
		f.note(fmt.Errorf("%s: %w", path.Join(f.dir, name), err))
		return zero
	}
	return v
}

// maxGIDs bounds a GID table: rxe's has 1024 entries, those of cards up to 256.
const maxGIDs = 4096

// gids reads the entries in use of a GID table (Documentation/ABI/stable/
// sysfs-class-infiniband). ok is false when the table cannot be read.
func (f *files) gids() (table []event.GID, ok bool) {
	entries, err := fs.ReadDir(f.fsys, path.Join(f.dir, "gids"))
	if err != nil {
		f.note(err)
		return nil, false
	}
	ok = true
	if len(entries) > maxGIDs {
		f.note(fmt.Errorf("%s: %d entries, %d are read", path.Join(f.dir, "gids"), len(entries), maxGIDs))
		entries, ok = entries[:maxGIDs], false
	}
	for _, e := range entries {
		index, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		before := len(f.bad)
		addr := value(f, "gids/"+e.Name(), netip.ParseAddr)
		ok = ok && len(f.bad) == before
		if !addr.IsValid() || addr.IsUnspecified() {
			continue // not in use
		}
		table = append(table, event.GID{
			Index: index, Addr: addr.Unmap(),
			Type:   f.attribute("types", e.Name()),
			Netdev: f.attribute("ndevs", e.Name()),
		})
	}
	slices.SortFunc(table, func(a, b event.GID) int { return cmp.Compare(a.Index, b.Index) })
	return table, ok
}

// attribute is a file of gid_attrs. The kernel answers EINVAL for an entry
// that has no such attribute, or none any more (drivers/infiniband/core/
// sysfs.c, _show_port_gid_attr).
func (f *files) attribute(kind, index string) string {
	b, err := fs.ReadFile(f.fsys, path.Join(f.dir, "gid_attrs", kind, index))
	if err != nil {
		if !errors.Is(err, unix.EINVAL) {
			f.note(err)
		}
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(b)), "_")
}

// counters reads hw_counters of a port, for kernels that do not tell them by
// netlink. A folder that is absent means a driver without.
func (f *files) counters() []counter {
	entries, err := fs.ReadDir(f.fsys, path.Join(f.dir, "hw_counters"))
	if err != nil {
		f.note(err)
		return nil
	}
	var out []counter
	for _, e := range entries {
		if e.Name() == "lifespan" || len(out) == maxCounters { // how long the driver keeps values, in ms
			continue
		}
		before := len(f.bad)
		n := value(f, "hw_counters/"+e.Name(), func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
		if len(f.bad) == before {
			out = append(out, counter{strings.ToValidUTF8(e.Name(), "_"), n})
		}
	}
	return out
}

type counter struct {
	name  string
	value uint64
}

// parseRate reads "100 Gb/sec (4X EDR)" into bytes a second.
func parseRate(s string) (float64, error) {
	number, unit, _ := strings.Cut(s, " ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n >= 0 && n <= 1e6) || !strings.HasPrefix(unit, "Gb/sec") {
		return 0, fmt.Errorf("not a rate: %.40q", s)
	}
	return n * 1e9 / 8, nil
}

// parseState reads "4: ACTIVE".
func parseState(s string) (string, error) {
	number, name, ok := strings.Cut(s, ": ")
	if _, err := strconv.Atoi(number); err != nil || !ok || name == "" {
		return "", fmt.Errorf("not a state: %.40q", s)
	}
	return name, nil
}
