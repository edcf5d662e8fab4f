package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"grayfail/event"
)

// recorder writes what the detector sees as JSON lines that replay reads. It
// stops, and says so once, at its size bound or at the first failed write: a
// full disk must not stop the detector. One goroutine writes; problem may be
// called by any.
type recorder struct {
	file    *os.File
	gzip    bool
	lines   bytes.Buffer // not yet in the file
	size    int64        // of the file, whole records only
	max     int64
	stopped atomic.Pointer[event.Problem]
}

// newRecorder opens path; a recording that is there is continued, so that a
// restart loses nothing (gzip readers take several members as one stream).
func newRecorder(path string, maxBytes int64) (*recorder, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	r := &recorder{file: f, gzip: strings.HasSuffix(path, ".gz"), max: maxBytes}
	if err := r.take(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("--record: %s: %w", path, err)
	}
	return r, nil
}

// take makes sure that nobody else writes the file, whose sizes and records
// would be mixed up, and that a line can begin at its end.
func (r *recorder) take() error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if r.size = info.Size(); !info.Mode().IsRegular() {
		return nil // a pipe or a device: nothing to continue
	}
	err = unix.Flock(int(r.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errors.New("another process records to it")
	}
	if r.size == 0 || r.gzip {
		return nil // a file system without locks is no reason to refuse
	}
	last := make([]byte, 1)
	if _, err := r.file.ReadAt(last, r.size-1); err != nil {
		return err
	}
	if last[0] != '\n' { // cut by a power failure, or written by others
		r.lines.WriteByte('\n')
	}
	return nil
}

// write appends one record. A nil recorder records nothing.
func (r *recorder) write(rec event.Record) {
	if r == nil || r.stopped.Load() != nil {
		return
	}
	line, err := json.Marshal(rec)
	if err != nil {
		r.stop("failed", err.Error())
		return
	}
	if r.size+int64(r.lines.Len()+len(line)+1) > r.max {
		r.flush()
		r.stop("size_limit", "the recording reached --record.max-bytes; what follows is not recorded")
		return
	}
	r.lines.Write(line)
	r.lines.WriteByte('\n')
}

// flush hands what is buffered to the file as whole lines, or as one whole
// gzip member: a killed exporter leaves a recording that replay can read and
// that a restart can continue.
func (r *recorder) flush() {
	if r == nil || r.lines.Len() == 0 {
		return
	}
	chunk := r.lines.Bytes()
	if r.gzip {
		var member bytes.Buffer
		gz := gzip.NewWriter(&member)
		_, _ = gz.Write(chunk) // a bytes.Buffer takes everything
		_ = gz.Close()
		chunk = member.Bytes()
	}
	n, err := r.file.Write(chunk)
	if err != nil {
		r.stop("failed", err.Error())
		if n > 0 {
			_ = r.file.Truncate(r.size) // no half record stays behind
		}
	} else {
		r.size += int64(n)
	}
	r.lines.Reset()
}

func (r *recorder) stop(reason, detail string) {
	r.stopped.CompareAndSwap(nil, &event.Problem{Reason: "recording_" + reason, Detail: detail})
}

// problem says why the recording stopped; its Reason is "" while it runs.
func (r *recorder) problem() event.Problem {
	if r == nil || r.stopped.Load() == nil {
		return event.Problem{}
	}
	return *r.stopped.Load()
}

func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	r.flush()
	return r.file.Close()
}
