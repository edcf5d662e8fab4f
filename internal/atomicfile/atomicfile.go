// Package atomicfile replaces files whole.
//
// In: a path and its next content. Out: the file with the old content or with
// the new one, whenever the process or the machine stops.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tempSuffix is fixed, so that kills leave one temporary file and not many.
// Two writers of one path must be kept apart by their callers.
const tempSuffix = ".new"

// Write replaces the file at path, readable by its owner alone. When it returns
// nil the content is on the disk; after an error the old file is in place.
func Write(path string, data []byte) error {
	temp := path + tempSuffix
	// O_NOFOLLOW: a link that somebody left here must not lead elsewhere.
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes renames in a directory last. A file system that cannot sync
// directories (some FUSE ones) is no error: it has no more to give.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
