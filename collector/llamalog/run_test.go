package llamalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"grayfail/event"
	"grayfail/internal/testkit"
)

// A running follower, and what it has found so far.
type running struct {
	t      *testing.T
	f      *Follower
	cancel context.CancelFunc
	done   chan error
	mu     sync.Mutex
	found  []int // tokens generated, which tell the requests apart
}

func run(t *testing.T, path string, hooks Hooks, poll time.Duration) *running {
	t.Helper()
	r := &running{t: t, done: make(chan error, 1)}
	hooks.Emit = func(req event.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.found = append(r.found, req.GeneratedTokens-10)
	}
	r.f = New(FollowConfig{Name: "log", Path: path, Model: "m", Poll: poll}, hooks)
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	go func() { r.done <- r.f.Run(ctx) }()
	t.Cleanup(r.cancel)
	return r
}

func (r *running) wait(want ...int) {
	r.t.Helper()
	testkit.Eventually(r.t, 20*time.Second, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !slices.Equal(r.found, want) {
			return fmt.Errorf("found %v, want %v; %+v", r.found, want, r.f.Status())
		}
		return nil
	})
}

func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	select {
	case err := <-r.done:
		if !errors.Is(err, context.Canceled) {
			r.t.Errorf("Run: %v", err)
		}
	case <-time.After(20 * time.Second):
		r.t.Fatal("Run does not end")
	}
}

func (r *running) up() {
	r.t.Helper()
	testkit.Eventually(r.t, 20*time.Second, func() error {
		if s := r.f.Status(); s.Availability != event.Up {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// The whole of it with a real file and inotify: a poll of an hour would see
// nothing in this test's time.
func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	rig := newRig(t)
	rig.write(1)
	hooks := rig.hooks()
	hooks.Now = nil
	r := run(t, rig.path, hooks, time.Hour)
	r.up()
	rig.write(2)
	r.wait(2)
	rig.rename(rig.path, rig.path+".1")
	rig.write(3)
	r.wait(2, 3)
	r.stop()
	rig.write(4)
	r = run(t, rig.path, hooks, time.Hour)
	r.wait(4)
	r.stop()
}

// Without inotify (the folder is not there yet) the poll sees the file.
func TestRunByPoll(t *testing.T) {
	defer goleak.VerifyNone(t)
	rig := newRig(t)
	rig.path = filepath.Join(filepath.Dir(rig.path), "later", "server.log")
	r := run(t, rig.path, Hooks{}, time.Millisecond)
	testkit.Eventually(t, 20*time.Second, func() error {
		if s := r.f.Status(); s.Availability != event.Failed {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	if err := os.Mkdir(filepath.Dir(rig.path), 0o755); err != nil {
		t.Fatal(err)
	}
	rig.write(1)
	r.wait(1)
	rig.write(2)
	r.wait(1, 2)
	r.stop()
}

func TestNamedPipe(t *testing.T) {
	defer goleak.VerifyNone(t)
	rig := newRig(t)
	if err := syscall.Mkfifo(rig.path, 0o644); err != nil {
		t.Fatal(err)
	}
	r := run(t, rig.path, Hooks{}, time.Millisecond)
	r.up()
	rig.write(1) // opens it, writes, closes: an engine that ends
	r.wait(1)
	rig.write(2) // the next
	r.wait(1, 2)
	// A new pipe under the name, and a file.
	if err := os.Remove(rig.path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(rig.path, 0o644); err != nil {
		t.Fatal(err)
	}
	rig.write(3) // waits for a reader
	r.wait(1, 2, 3)
	if err := os.Remove(rig.path); err != nil {
		t.Fatal(err)
	}
	rig.write(4)
	r.wait(1, 2, 3, 4)
	r.stop()
}

// A pipe that may only be read has an end whenever nobody writes.
func TestNamedPipeReadOnly(t *testing.T) {
	rig := newRig(t)
	if err := syscall.Mkfifo(rig.path, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(rig.path); dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testkit.AsNobody(t, rig.step)
	if s := rig.f.Status(); s.Availability != event.Up || rig.f.source.waits {
		t.Fatalf("%+v", s)
	}
	rig.step()
	rig.want()
	writer, err := os.OpenFile(rig.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.WriteString(whole1(1)); err != nil {
		t.Fatal(err)
	}
	rig.step()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	rig.step()
	rig.want("1")
}
