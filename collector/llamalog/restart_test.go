package llamalog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every request once, wherever the program stops and in whatever order it
// stops: in good order, or killed.
func TestRestart(t *testing.T) {
	for _, inOrder := range []bool{true, false} {
		r := newRig(t)
		r.step()
		text := whole1(1) + whole1(2) + whole1(3)
		for i := 0; i < len(text); i += 37 {
			r.append(r.path, text[i:min(i+37, len(text))])
			r.step()
			if inOrder {
				r.stop()
			} else {
				r.f.saveIfDue(r.now.Add(saveEvery)) // a second passes
				r.f.closeSource()
			}
			r.start()
		}
		r.step()
		r.want("1", "2", "3")
	}
}

// Killed before the place was kept again: at most what was not told is left.
func TestKilled(t *testing.T) {
	r := newRig(t)
	r.step()
	r.write(1, 2)
	r.step()
	r.append(r.path, launch(0, 3)+"\n")
	r.step() // read, not yet kept
	r.f.closeSource()
	r.start()
	r.write(4)
	r.step()
	r.want("1", "2", "4")
}

func TestRequestsWhileAway(t *testing.T) {
	r := newRig(t)
	r.step()
	r.write(1)
	r.step()
	r.stop()
	r.write(2)
	written := r.now.Add(-3 * time.Second)
	if err := os.Chtimes(r.path, written, written); err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(time.Minute)
	r.start()
	r.step()
	r.want("1", "2")
	if r.last.EndNS > written.UnixNano() {
		t.Errorf("ended %v after the file was last written", time.Duration(r.last.EndNS-written.UnixNano()))
	}
	r.write(3)
	r.step()
	r.want("3")
	if r.last.EndNS != r.now.UnixNano() {
		t.Errorf("%+v", r.last)
	}
}

func TestRotatedWhileAway(t *testing.T) {
	r := newRig(t)
	r.step()
	r.write(1)
	r.step()
	r.stop()
	r.write(2)
	r.rename(r.path, r.path+".1")
	r.write(3)
	r.start()
	r.step()
	r.step()
	r.want("1", "2", "3")

	// Renamed, and nothing new there yet.
	r.stop()
	r.write(4)
	r.rename(r.path, filepath.Join(filepath.Dir(r.path), "server-20261130.log"))
	r.start()
	r.step()
	r.write(5)
	r.step()
	r.want("4", "5")
}

func TestReplacedWhileAway(t *testing.T) {
	for name, replace := range map[string]func(r *rig) error{
		"truncated": func(r *rig) error { return os.Truncate(r.path, 0) },
		"removed":   func(r *rig) error { return os.Remove(r.path) },
		"rotated and compressed": func(r *rig) error {
			return os.Rename(r.path, filepath.Join(t.TempDir(), "elsewhere"))
		},
	} {
		r := newRig(t)
		r.step()
		r.write(1, 2)
		r.step()
		r.stop()
		if err := replace(r); err != nil {
			t.Fatal(err)
		}
		r.write(3, 4, 5, 6)
		r.start()
		r.step()
		r.step()
		t.Log(name)
		r.want("1", "2", "3", "4", "5", "6")
	}
}

func TestStatesThatAreNone(t *testing.T) {
	r := newRig(t)
	r.step()
	r.write(1)
	r.step()
	r.stop()
	good := slices.Clone(r.kept)
	for name, state := range map[string]string{
		"corrupt":          string(good[:len(good)/2]),
		"of another":       strings.Replace(string(good), "server.log", "other.log", 1),
		"of a later time":  strings.Replace(string(good), `"version":1`, `"version":2`, 1),
		"impossible":       strings.Replace(string(good), `"offset":`, `"offset":-`, 1),
		"impossible slots": strings.Replace(string(good), `"streams":{`, `"streams":{"x":null,`, 1),
	} {
		r.kept, r.found = []byte(state), nil
		r.start()
		r.step()
		bad := slices.Contains(r.reasons(), "bad_state")
		if want := name != "of another"; bad != want {
			t.Errorf("%s: %v", name, r.reasons())
		}
		r.write(2)
		r.step()
		t.Log(name)
		r.want("2")
		r.stop()
	}

	// An hour and more away: as at a first start.
	r.write(3)
	r.now = r.now.Add(maxGap + time.Minute)
	r.start()
	r.step()
	r.want()
	r.write(4)
	r.step()
	r.want("4")
}
