package llamalog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"grayfail/event"
	"grayfail/internal/testkit"
)

func TestFirstStartBeginsAtTheEnd(t *testing.T) {
	r := newRig(t)
	r.write(1, 2)
	r.append(r.path, "slot      release: id  0 | ta") // amid a line
	r.step()
	r.want()
	r.append(r.path, "sk 9 | stop processing: n_tokens = 9, truncated = 0\n")
	r.write(3)
	r.step()
	r.want("3")
	if s := r.f.Status(); s.Availability != event.Up || s.Collector != "requests" {
		t.Errorf("%+v", s)
	}
	if r.last.Model != "m" || r.last.EndNS != r.now.UnixNano() || r.last.GeneratedTokens != 13 {
		t.Errorf("%+v", r.last)
	}
}

// The model's name stands at the beginning of a log, which is read for that.
func TestModelFromTheHead(t *testing.T) {
	r := newRig(t)
	r.f.config.Model = ""
	r.append(r.path, "0.00.022.318 I srv    load_model: loading model '/models/tiny.gguf'\n")
	r.write(1)
	r.step()
	r.want()
	r.write(2)
	r.step()
	r.want("2")
	if r.last.Model != "tiny" {
		t.Errorf("%+v", r.last)
	}
}

func TestAFileThatComesLaterIsReadWhole(t *testing.T) {
	r := newRig(t)
	r.step()
	if s := r.f.Status(); s.Availability != event.Failed || s.Problems[0].Reason != "no_such_file" || s.Errors != 1 {
		t.Errorf("%+v", s)
	}
	r.write(1)
	r.step()
	r.want("1")
	if r.last.Concurrency != 0 { // launched and ended in one moment of the line's clock
		t.Errorf("%+v", r.last)
	}
	if s := r.f.Status(); s.Availability != event.Up {
		t.Errorf("%+v", s)
	}
}

func TestPartialLines(t *testing.T) {
	r := newRig(t)
	r.step()
	text := whole1(1)
	for i := range text {
		r.append(r.path, text[i:i+1])
		r.f.step(t.Context())
		if i < len(text)-1 && len(r.found) > 0 {
			t.Fatalf("found %v after %q", r.found, text[:i+1])
		}
	}
	r.want("1")
}

func TestRotation(t *testing.T) {
	r := newRig(t)
	r.step()
	r.write(1)
	r.step()
	r.rename(r.path, r.path+".1")
	r.append(r.path+".1", whole1(2)) // the engine has not noticed
	r.step()
	r.append(r.path+".1", whole1(3))
	r.append(r.path, "") // the new file
	r.step()
	r.append(r.path+".1", whole1(4)) // and never will
	r.step()
	r.want("1", "2", "3", "4")
	r.append(r.path+".1", whole1(5))
	r.write(6) // it has now
	r.step()
	r.step()
	r.write(7)
	r.step()
	r.want("5", "6", "7")
}

func TestRemovedFileIsLeft(t *testing.T) {
	r := newRig(t)
	r.write(1)
	r.step()
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	r.step()
	if s := r.f.Status(); s.Availability != event.Up {
		t.Errorf("%+v", s)
	}
	r.now = r.now.Add(leaveAfter)
	r.step()
	if r.f.source != nil || !slices.Contains(r.reasons(), "no_such_file") {
		t.Errorf("still open; %+v", r.f.Status())
	}
	r.write(2)
	r.step()
	r.want("2")
}

func TestTruncation(t *testing.T) {
	r := newRig(t)
	r.step()
	r.write(1, 2)
	r.step()
	if err := os.Truncate(r.path, 0); err != nil {
		t.Fatal(err)
	}
	r.step()
	r.write(3)
	r.step()
	r.want("1", "2", "3")

	// Truncated and written beyond the old length before anybody looked.
	if err := os.Truncate(r.path, 0); err != nil {
		t.Fatal(err)
	}
	r.write(4, 5, 6, 7)
	r.step()
	r.want("4", "5", "6", "7")
}

// copytruncate under a writer that does not append: it goes on at its old
// offset, and a hole of zeros is left before that.
func TestCopyTruncateLeavesAHole(t *testing.T) {
	for name, look := range map[string]bool{"seen while empty": true, "seen when grown": false} {
		r := newRig(t)
		r.step()
		writer, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 { // beyond a block of the file system
			_, _ = writer.WriteString("srv  params_from_: Chat format: Content-only\n")
		}
		_, _ = writer.WriteString(whole1(1))
		r.step()
		if err := os.Truncate(r.path, 0); err != nil {
			t.Fatal(err)
		}
		if look {
			r.step()
		}
		_, _ = writer.WriteString(whole1(2) + whole1(3))
		r.step()
		_ = writer.Close()
		t.Log(name)
		r.want("1", "2", "3")
	}
}

func TestLinkToAFile(t *testing.T) {
	r := newRig(t)
	real := filepath.Join(filepath.Dir(r.path), "pods", "0.log")
	if err := os.MkdirAll(filepath.Dir(real), 0o755); err != nil {
		t.Fatal(err)
	}
	r.append(real, whole1(1))
	if err := os.Symlink(real, r.path); err != nil {
		t.Fatal(err)
	}
	r.step()
	r.append(real, whole1(2))
	r.step()
	r.rename(real, real+".20261130")
	r.append(real, whole1(3))
	r.step()
	r.want("2", "3")
}

func TestWhatCannotBeFollowed(t *testing.T) {
	r := newRig(t)
	if err := os.Mkdir(r.path, 0o755); err != nil {
		t.Fatal(err)
	}
	r.step()
	if got := r.reasons(); !slices.Equal(got, []string{"failed"}) || !strings.Contains(r.f.Status().Problems[0].Detail, "neither a file nor a named pipe") {
		t.Errorf("%+v", r.f.Status())
	}

	r = newRig(t)
	r.write(1)
	if err := os.Chmod(r.path, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(r.path); dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	testkit.AsNobody(t, r.step)
	if got := r.reasons(); !slices.Equal(got, []string{"no_permission"}) {
		t.Errorf("%+v", r.f.Status())
	}
	// Allowed later: what was there before the start stays unread.
	r.step()
	r.write(2)
	r.step()
	r.want("2")
}

func TestWhatALogHolds(t *testing.T) {
	r := newRig(t)
	r.step()
	r.append(r.path, string(fixture(t, "composed/vllm-engine.log"))+string(fixture(t, "composed/journalctl-blobs.log")))
	r.step()
	if got := r.reasons(); !slices.Equal(got, []string{"not_per_request", "journald_blob"}) || r.f.Status().Availability != event.Degraded {
		t.Errorf("%+v", r.f.Status())
	}
	if s := r.f.Stats(); s.Lines != 4 || s.Ignored[IgnoredVLLM] != 1 {
		t.Errorf("%+v", s)
	}
}

func TestInFlight(t *testing.T) {
	r := newRig(t)
	r.step()
	r.append(r.path, launch(0, 1)+"\n"+launch(1, 2)+"\n")
	r.step()
	if got := r.f.InFlight(); got["m"] != 2 {
		t.Errorf("%v", got)
	}
	r.append(r.path, release(0, 1, 9)+"\n")
	r.step()
	if got := r.f.InFlight(); got["m"] != 1 {
		t.Errorf("%v", got)
	}
}

// The place is kept before the requests up to it are told.
func TestSavedBeforeTold(t *testing.T) {
	r := newRig(t)
	r.step()
	r.write(1)
	var keptWhenTold int
	emit := r.f.hooks.Emit
	r.f.hooks.Emit = func(req event.Request) { keptWhenTold = len(r.kept); emit(req) }
	r.step()
	r.want("1")
	if keptWhenTold == 0 {
		t.Error("told before it was kept")
	}
	r.saveErr = errors.New("disk full")
	r.write(2)
	r.step()
	r.want("2")
	if got := r.reasons(); !slices.Equal(got, []string{"state_not_saved"}) {
		t.Errorf("%+v", r.f.Status())
	}
	r.saveErr = nil
	r.write(3)
	r.step()
	r.want("3")
	if got := r.reasons(); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

func TestSavedOnceASecondWhileItGrows(t *testing.T) {
	r := newRig(t)
	r.step()
	saves := 0
	save := r.f.hooks.Save
	r.f.hooks.Save = func(b []byte) error { saves++; return save(b) }
	for range 50 { // five seconds
		r.append(r.path, "srv  params_from_: Chat format: Content-only\n")
		r.step()
	}
	if saves < 4 || saves > 6 {
		t.Errorf("%d saves in 5 s", saves)
	}
	saves = 0
	r.now = r.now.Add(2 * time.Second)
	for range 50 {
		r.step()
	}
	if saves > 1 {
		t.Errorf("%d saves of nothing new", saves)
	}
}

// TestReplacedMidLine: the engine is killed in the middle of a line, and the
// next one writes a new file. The cut line is never joined to the new one's.
func TestReplacedMidLine(t *testing.T) {
	for name, replace := range map[string]func(r *rig){
		"renamed":   func(r *rig) { r.rename(r.path, r.path+".1") },
		"removed":   func(r *rig) { _ = os.Remove(r.path) },
		"truncated": func(r *rig) { _ = os.Truncate(r.path, 0) },
	} {
		whole := whole1(2)
		for _, cut := range []int{1, len(whole) / 3, len(whole) / 2} {
			r := newRig(t)
			r.step()
			r.write(1)
			r.append(r.path, whole[:cut])
			r.step()
			replace(r)
			r.write(3, 4)
			r.step()
			r.step()
			t.Log(name, cut)
			r.want("1", "3", "4")
		}
	}
}
