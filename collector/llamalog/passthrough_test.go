package llamalog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"grayfail/event"
)

func TestPassThrough(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, name := range fixtures(t) {
		log := append(fixture(t, name), "\x00\xff no newline"...)
		want, _ := whole(log)
		var out bytes.Buffer
		var got int
		err := PassThrough(t.Context(), bytes.NewReader(log), &out, Config{Name: "push", Model: "m"}, Hooks{
			Emit: func(r event.Request) {
				got++
				if r.Model != "m" || r.Source != "push" {
					t.Errorf("%+v", r)
				}
			},
		})
		if err != nil || !bytes.Equal(out.Bytes(), log) || got != len(want) {
			t.Errorf("%s: %v, %d bytes of %d, %d requests of %d", name, err, out.Len(), len(log), got, len(want))
		}
	}
}

// Each piece is written out before the next is waited for, and a request is
// told when its time has come though nothing more does.
func TestPassThroughHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, engine := io.Pipe()
		terminal, out := io.Pipe()
		var mu sync.Mutex
		var all []event.Request
		found := func() []event.Request {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return all
		}
		emit := func(r event.Request) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r)
		}
		done := make(chan error, 1)
		go func() {
			done <- PassThrough(t.Context(), in, out, Config{Model: "m"}, Hooks{Emit: emit})
		}()
		buf := make([]byte, 100)
		for _, piece := range []string{"a", " wo", "rd\n"} {
			if _, err := engine.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
			if n, err := terminal.Read(buf); err != nil || string(buf[:n]) != piece {
				t.Fatalf("%q, %v", buf[:n], err)
			}
		}
		go func() { _, _ = io.Copy(io.Discard, terminal) }()
		if _, err := engine.Write([]byte(block(0, 1, 10, 100, 10, 900) + "\n")); err != nil {
			t.Fatal(err)
		}
		ended := time.Now().UnixNano()
		if got := found(); len(got) != 0 {
			t.Fatalf("told before its release: %+v", got)
		}
		time.Sleep(3 * time.Second)
		if got := found(); len(got) != 1 || got[0].EndNS != ended {
			t.Fatalf("%+v", got)
		}
		_ = engine.Close()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		_ = terminal.Close()
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
func (f failing) Read([]byte) (int, error)  { return 0, f.err }

func TestPassThroughEnds(t *testing.T) {
	defer goleak.VerifyNone(t)
	hooks := Hooks{Emit: func(event.Request) {}}
	broken := errors.New("broken pipe")
	if err := PassThrough(t.Context(), bytes.NewReader([]byte("x")), failing{broken}, Config{}, hooks); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if err := PassThrough(t.Context(), failing{broken}, io.Discard, Config{}, hooks); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, engine := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- PassThrough(ctx, in, io.Discard, Config{}, hooks) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	_ = engine.Close()
}
