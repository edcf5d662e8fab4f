package llamalog

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"grayfail/event"
)

// FollowConfig says which log to follow.
type FollowConfig struct {
	Name  string // Source of its requests
	Path  string // a file, a link to one, or a named pipe
	Model string // see Config.Model
	// Poll is how often the file is looked at when nothing reports a change
	// [250ms].
	Poll time.Duration
}

// Hooks connect a log to the rest.
type Hooks struct {
	// Emit takes each request.
	Emit func(event.Request)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Load returns what Save was last given, and nil when that was nothing.
	// Save keeps it, replacing the old whole; it is called before the requests
	// read up to there are emitted, and once a second while the log grows.
	// Either may be nil: then every start is a first one. Not used by
	// PassThrough.
	Load func() ([]byte, error)
	Save func(state []byte) error
}

func (h *Hooks) now() time.Time {
	if h.Now == nil {
		return time.Now()
	}
	return h.Now()
}

// A Follower reads one log as it grows, whatever becomes of the file: renamed
// and made anew, truncated, copied and truncated, away for a while.
//
// At its first start it begins at the end of the file: yesterday's requests
// are not judged as today's. A file that comes later is read whole. With a
// state it goes on where it stopped, so that no request is counted twice or
// left out; a state older than an hour is as good as none.
//
// It keeps reading a renamed file until the new one has something in it: an
// engine that was not told about the rotation goes on writing to the old.
type Follower struct {
	config FollowConfig
	hooks  Hooks

	parser *Parser
	source *source
	buf    []byte
	// missed: the file was not there when it was first looked for.
	missed bool
	// oldTo: what the file holds up to there was written by oldNS.
	oldTo, oldNS int64
	grewAt       time.Time
	savedAt      time.Time
	dirty        bool
	loaded       *state
	tried        bool // to load
	searched     bool // for a file renamed before the start

	mu     sync.Mutex // guards what others look at
	status event.Status
	asides map[string]event.Problem
	stats  Stats
	flying map[string]int
}

const (
	readSize = 64 << 10
	// maxTurn bounds what is read before the world is looked at again.
	maxTurn = 16 << 20
	// maxGap is how long a log may go unread before what it holds is news no
	// more.
	maxGap = time.Hour
	// leaveAfter is how long a removed file is read on without growing.
	leaveAfter = time.Minute
	saveEvery  = time.Second
)

// New makes a follower. It reads nothing before Run.
func New(config FollowConfig, hooks Hooks) *Follower {
	if config.Poll <= 0 {
		config.Poll = 250 * time.Millisecond
	}
	return &Follower{
		config: config, hooks: hooks, buf: make([]byte, readSize),
		status: event.Status{Collector: "requests"}, asides: map[string]event.Problem{},
	}
}

// Run follows the log until ctx ends. What it cannot do stands in Status, and
// is tried again: it returns ctx's error and no other.
func (f *Follower) Run(ctx context.Context) error {
	w := newWatch(f.config.Path)
	defer func() { w.close() }()
	defer f.leave()
	var watched identity
	for {
		f.step(ctx)
		if f.source != nil && f.source.identity != watched { // links may lead elsewhere now
			watched = f.source.identity
			w.close()
			w = newWatch(f.config.Path)
			f.aside("no_inotify", w.err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.source != nil && f.source.waits {
			continue // its read has waited
		}
		w.wait(ctx, f.config.Poll)
	}
}

// step takes what has come since the last one.
func (f *Follower) step(ctx context.Context) {
	began := time.Now()
	err := f.turn(ctx)
	if f.parser != nil {
		f.emit(f.parser.Idle(f.hooks.now().UnixNano()))
		f.saveIfDue(f.hooks.now())
	}
	f.report(err, time.Since(began))
}

func (f *Follower) turn(ctx context.Context) error {
	if f.source == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	for {
		if err := f.read(ctx); err != nil {
			f.closeSource()
			return err
		}
		if again, err := f.rotate(ctx); !again {
			return err
		}
	}
}

// read takes what has come.
func (f *Follower) read(ctx context.Context) error {
	if f.source.fifo {
		return f.readPipe()
	}
	return f.readFile(ctx)
}

// readFile takes what the file holds beyond the offset.
func (f *Follower) readFile(ctx context.Context) error {
	s := f.source
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == s.offset {
		return nil
	}
	if s.rewritten(info.Size()) {
		f.parser.dropLine()
		f.oldTo = 0
		if err := s.seek(min(s.firstData(), info.Size())); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	for took := 0; took < maxTurn && ctx.Err() == nil; {
		buf := f.buf
		old := s.offset < f.oldTo
		if old {
			buf = buf[:min(int64(len(buf)), f.oldTo-s.offset)]
		}
		n, err := s.file.ReadAt(buf, s.offset)
		if n > 0 {
			took += n
			s.offset += int64(n)
			f.take(buf[:n], old)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || n == 0 {
			break
		}
	}
	err = s.seek(s.offset)
	if errors.Is(err, io.EOF) {
		return nil // truncated just now: the next turn sees it
	}
	return err
}

// take reads bytes of the log and hands on what ended in them.
func (f *Follower) take(b []byte, old bool) {
	now := f.hooks.now()
	f.grewAt, f.dirty = now, true
	var found []event.Request
	if old {
		found = f.parser.FeedOld(b, min(now.UnixNano(), f.oldNS))
	} else {
		found = f.parser.Feed(b, now.UnixNano())
	}
	f.emit(found)
}

// emit hands requests on, after their end in the log has been noted: should
// the program end between the two, they are lost, and not counted twice.
func (f *Follower) emit(found []event.Request) {
	if len(found) == 0 {
		return
	}
	f.save(f.hooks.now())
	for _, r := range found {
		f.hooks.Emit(r)
	}
}

// readPipe takes what is in the pipe, or waits a moment for it.
func (f *Follower) readPipe() error {
	if f.source.waits {
		// A deadline of the kernel's clock: this is I/O, no time of an event.
		if err := f.source.file.SetReadDeadline(time.Now().Add(f.config.Poll)); err != nil {
			f.source.waits = false
		}
	}
	n, err := f.source.file.Read(f.buf)
	if n > 0 {
		f.take(f.buf[:n], false)
	}
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// rotate goes over to the file that has taken the log's name; again says that
// there is more to read now.
func (f *Follower) rotate(ctx context.Context) (again bool, err error) {
	info, err := os.Stat(f.config.Path)
	if err == nil && identityOf(info) == f.source.identity {
		return false, nil
	}
	gone := f.source.removed() && f.hooks.now().Sub(f.grewAt) >= leaveAfter
	if err != nil {
		if gone {
			f.closeSource()
			f.missed = true
			return false, err
		}
		return false, nil
	}
	if info.Mode().IsRegular() && info.Size() == 0 && !gone {
		return false, nil
	}
	if !f.source.fifo { // what came before the rename was seen
		if err := f.readFile(ctx); err != nil {
			return false, err
		}
		if size, err := f.source.file.Stat(); err == nil && f.source.offset < size.Size() {
			return false, nil // more than one turn: go on with it first
		}
	}
	next, err := openSource(f.config.Path)
	if err != nil {
		return false, err
	}
	caughtUp := f.oldTo == 0 || f.source.offset > f.oldTo
	f.closeSource()
	f.parser.dropLine()
	f.source, f.grewAt, f.dirty = next, f.hooks.now(), true
	if f.oldTo = 0; !caughtUp {
		f.oldTo, f.oldNS = info.Size(), info.ModTime().UnixNano()
	}
	return ctx.Err() == nil, next.seek(0)
}

func (f *Follower) closeSource() {
	if f.source != nil {
		_ = f.source.file.Close()
		f.source = nil
	}
}

// leave notes where the log was left.
func (f *Follower) leave() {
	if f.source != nil {
		f.save(f.hooks.now())
		f.closeSource()
	}
}

// open opens the log and finds where to begin.
func (f *Follower) open() error {
	f.load()
	s, err := openSource(f.config.Path)
	if err != nil {
		f.missed = f.missed || errors.Is(err, fs.ErrNotExist)
		if rotated := f.resumeRotated(); rotated != nil {
			f.source = rotated
			return nil
		}
		return err
	}
	if err := f.begin(s); err != nil {
		_ = s.file.Close()
		return err
	}
	f.grewAt = f.hooks.now()
	return nil
}
