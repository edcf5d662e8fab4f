package llamalog

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"grayfail/event"
)

// A rig is a log in a folder of its own, a clock, and what followers of it
// found and kept, one follower after another.
type rig struct {
	t       *testing.T
	path    string
	now     time.Time
	f       *Follower
	found   []string // task numbers in the order they were told
	last    event.Request
	kept    []byte
	saveErr error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "server.log"), now: time.Unix(0, arrived)}
	r.start()
	return r
}

// start makes a new follower, as a restart of the program does.
func (r *rig) start() {
	r.f = New(FollowConfig{Name: "log", Path: r.path, Model: "m"}, r.hooks())
	r.t.Cleanup(r.f.closeSource)
}

func (r *rig) hooks() Hooks {
	return Hooks{
		Emit: func(req event.Request) {
			_, rest, _ := strings.Cut(req.ID, "task-")
			id, _, _ := strings.Cut(rest, "-")
			r.found = append(r.found, id)
			r.last = req
		},
		Now:  func() time.Time { return r.now },
		Load: func() ([]byte, error) { return r.kept, nil },
		Save: func(b []byte) error {
			if r.saveErr != nil {
				return r.saveErr
			}
			r.kept = slices.Clone(b)
			return nil
		},
	}
}

// step lets a tenth of a second pass and the follower look.
func (r *rig) step() {
	r.now = r.now.Add(100 * time.Millisecond)
	r.f.step(context.Background())
}

// stop ends the follower in good order.
func (r *rig) stop() { r.f.leave() }

// want checks what was found since the last call.
func (r *rig) want(ids ...string) {
	r.t.Helper()
	if !slices.Equal(r.found, ids) {
		r.t.Errorf("found %v, want %v; %+v", r.found, ids, r.f.Status())
	}
	r.found = nil
}

// append writes to the file at path as a program that appends does.
func (r *rig) append(path, text string) {
	r.t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) write(ids ...int) {
	r.t.Helper()
	for _, id := range ids {
		r.append(r.path, whole1(id))
	}
}

// whole1 is everything that a server writes about one request.
func whole1(id int) string {
	stamp := "0.30." + strconv.Itoa(100+id%900) + ".000 I "
	text := launch(0, id) + "\n" + block(0, id, 70, 700, 10+id, 1000) + "\n" + release(0, id, 79+id) + "\n"
	return stamp + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+stamp) + "\n"
}

func (r *rig) rename(from, to string) {
	r.t.Helper()
	if err := os.Rename(from, to); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) reasons() (reasons []string) {
	for _, p := range r.f.Status().Problems {
		reasons = append(reasons, p.Reason)
	}
	return reasons
}
