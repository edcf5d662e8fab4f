package lab

import (
	"errors"
	"os"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	l, err := NewLoad(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acted(); !errors.Is(err, ErrDidNotAct) {
		t.Errorf("before Apply: %v, want ErrDidNotAct", err)
	}
	if err := l.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Clear() })
	pid := l.running[0].Process.Pid
	for {
		e, err := l.Acted()
		if err == nil && e.Count > 0 {
			break
		}
		if !errors.Is(err, ErrDidNotAct) {
			t.Fatal(err)
		}
		if !sleep(t.Context(), 10*time.Millisecond) {
			t.Fatal("no CPU time taken")
		}
	}
	if err := l.Clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := cpuTicks(pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("process %d after Clear: %v", pid, err)
	}
	if err := l.Clear(); err != nil {
		t.Errorf("clearing again: %v", err)
	}
	if _, err := NewLoad(0); err == nil {
		t.Error("no load is accepted")
	}
}
