package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"grayfail/detector"
	"grayfail/internal/atomicfile"
)

// Files of the state directory that hold the detector's state.
const (
	stateFile    = "detector.state"
	previousFile = "detector.state.previous"
	lockFile     = "lock"
	asideMark    = ".aside-"
)

const (
	// maxStateSize is beyond what the detector's bounds allow.
	maxStateSize = 256 << 20
	// maxAside bounds the files that were set aside: the oldest goes.
	maxAside = 8
)

func statePath(dir, name string) string { return filepath.Join(dir, name) }

// makeStateDir makes the directory. What an operator's disk refuses is shown
// later, when something is to be written; only a name that is no directory is
// an error.
func makeStateDir(dir string) error {
	err := os.MkdirAll(dir, 0o750)
	if err == nil || errors.Is(err, unix.EROFS) || errors.Is(err, unix.ENOSPC) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return fmt.Errorf("--state.dir: %w", err)
}

// lockDir makes sure that no two exporters write the same files. An error other
// than EWOULDBLOCK says only that this cannot be made sure.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(statePath(dir, lockFile), os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// readStateFile reads a regular file of a sensible size.
func readStateFile(dir, name string) ([]byte, error) {
	f, err := os.OpenFile(statePath(dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is a %s", detector.ErrStateForeign, info.Mode().Type())
	case info.Size() > maxStateSize:
		return nil, fmt.Errorf("%w: it has %d bytes", detector.ErrStateForeign, info.Size())
	}
	return io.ReadAll(io.LimitReader(f, maxStateSize))
}

// keepPrevious makes the state of now the one of before.
func keepPrevious(dir string) error {
	temp := statePath(dir, previousFile+".new")
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Link(statePath(dir, stateFile), temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was saved yet
	}
	if err == nil {
		err = os.Rename(temp, statePath(dir, previousFile))
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) {
		return nil // a file system without links: then there is no file of before
	}
	return err
}

// asideFile renames a file so that nothing overwrites it, and returns its new
// name.
func asideFile(dir, name string, now time.Time) (string, error) {
	to := name + asideMark + now.UTC().Format("20060102T150405.000000000Z")
	if err := os.Rename(statePath(dir, name), statePath(dir, to)); err != nil {
		return "", err
	}
	pruneAside(dir)
	return to, atomicfile.SyncDir(dir)
}

// pruneAside removes the oldest files that were set aside; the names sort by
// time, of either kind.
func pruneAside(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var aside []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stateFile) && strings.Contains(e.Name(), asideMark) && e.Type().IsRegular() {
			aside = append(aside, e.Name())
		}
	}
	at := func(name string) string { return name[strings.Index(name, asideMark):] }
	for len(aside) > maxAside {
		oldest := 0
		for i := range aside {
			if at(aside[i]) < at(aside[oldest]) {
				oldest = i
			}
		}
		_ = os.Remove(statePath(dir, aside[oldest]))
		aside = append(aside[:oldest], aside[oldest+1:]...)
	}
}
