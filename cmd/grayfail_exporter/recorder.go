package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"grayfail/event"
)

// recorder writes what the detector sees as JSON lines that replay reads. It
// stops, and says so once, at its size bound or at the first failed write: a
// full disk must not stop the detector. Used by one goroutine.
type recorder struct {
	file    io.Closer
	gz      *gzip.Writer // nil unless the name ends in .gz
	buf     *bufio.Writer
	room    int64 // bytes left before compression
	stopped event.Problem
}

// newRecorder opens path; a recording that is there is continued, so that a
// restart loses nothing (gzip readers take several members as one stream).
func newRecorder(path string, maxBytes int64) (*recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("--record: %w", err)
	}
	r := &recorder{file: f, room: maxBytes - info.Size()}
	var w io.Writer = f
	if strings.HasSuffix(path, ".gz") {
		r.gz = gzip.NewWriter(f)
		w = r.gz
	}
	r.buf = bufio.NewWriterSize(w, 1<<16)
	return r, nil
}

// write appends one record. A nil recorder records nothing.
func (r *recorder) write(rec event.Record) {
	if r == nil || r.stopped.Reason != "" {
		return
	}
	line, err := json.Marshal(rec)
	if err != nil {
		r.stop("failed", err.Error())
		return
	}
	if r.room -= int64(len(line)) + 1; r.room < 0 {
		r.stop("size_limit", "the recording reached --record.max-bytes; what follows is not recorded")
		return
	}
	_, _ = r.buf.Write(append(line, '\n')) // bufio keeps the error for flush
}

// flush hands what is buffered to the file, so that a killed exporter leaves a
// recording that replay can read.
func (r *recorder) flush() {
	if r == nil || r.stopped.Reason == "failed" {
		return
	}
	err := r.buf.Flush()
	if err == nil && r.gz != nil {
		err = r.gz.Flush()
	}
	if err != nil {
		r.stop("failed", err.Error())
	}
}

func (r *recorder) stop(reason, detail string) {
	r.stopped = event.Problem{Reason: "recording_" + reason, Detail: detail}
}

// problem says why the recording stopped; its Reason is "" while it runs.
func (r *recorder) problem() event.Problem {
	if r == nil {
		return event.Problem{}
	}
	return r.stopped
}

func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	r.flush()
	if r.gz != nil {
		if err := r.gz.Close(); err != nil && r.stopped.Reason == "" {
			r.stop("failed", err.Error())
		}
	}
	return r.file.Close()
}
