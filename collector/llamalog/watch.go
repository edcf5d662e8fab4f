package llamalog

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A watch wakes a follower when something happens to its file. Where inotify
// cannot (limits, network file systems) the follower's poll sees it later.
type watch struct {
	watcher *fsnotify.Watcher
	// names are the paths of the file: its own and that of what it links to.
	names map[string]bool
	err   error
}

func newWatch(path string) *watch {
	w := &watch{names: map[string]bool{filepath.Clean(path): true}}
	w.watcher, w.err = fsnotify.NewWatcher()
	if w.err != nil {
		return w
	}
	// Folders, not files: a file may come, go and be replaced.
	w.err = w.watcher.Add(filepath.Dir(path))
	if target, err := filepath.EvalSymlinks(path); err == nil && target != filepath.Clean(path) {
		w.names[target] = true
		if err := w.watcher.Add(filepath.Dir(target)); w.err == nil {
			w.err = err
		}
	}
	return w
}

// wait returns when the file may have changed, after d at the latest.
func (w *watch) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var events chan fsnotify.Event
	var errs chan error
	if w.watcher != nil {
		events, errs = w.watcher.Events, w.watcher.Errors
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case e := <-events:
			if w.names[e.Name] {
				return
			}
		case err := <-errs:
			if err != nil { // an overflow: anything may have happened
				return
			}
		}
	}
}

func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
}
