package demo

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab"
)

func exporterBinary(t *testing.T) string {
	t.Helper()
	root, err := lab.Root()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "grayfail_exporter")
	build := exec.Command("go", "build", "-o", binary, "./cmd/grayfail_exporter")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// TestRun is the demo in short, with a loss so heavy that a few requests are
// enough to see it.
func TestRun(t *testing.T) {
	testkit.RequireRoot(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var out bytes.Buffer
	var err error
	binary := exporterBinary(t)
	for range 3 { // a trial on a busy machine is not valid: it tells of the machine
		out.Reset()
		err = Run(ctx, Options{Lab: lab.Options{Instance: "short"}, Binary: binary, Seed: 1, Blocks: 2, Loss: []float64{1, 8}}, &out)
		t.Log(out.String())
		if !errors.Is(err, ErrBusy) {
			break
		}
		t.Log(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"lab: llama.cpp ", "block  2/2", "median tok/s", "named: " + lab.LegB, "alertname: GrayfailPathNamed", "leg: " + lab.LegB, " 0 of them hint at a fault",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

// TestRunInterrupted: an interrupt is passed on, and the lab is gone.
func TestRunInterrupted(t *testing.T) {
	testkit.RequireRoot(t)
	ctx, cancel := context.WithCancel(context.Background())
	out := &interrupter{at: "warm-up:", do: cancel}
	err := Run(ctx, Options{Lab: lab.Options{Instance: "intr", Engine: lab.EngineStandin}, Binary: exporterBinary(t), Seed: 1}, out)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v, want context.Canceled", err)
	}
	if !strings.Contains(out.String(), "STAND-IN, not an inference engine") {
		t.Errorf("the stand-in is not labelled:\n%s", out.String())
	}
	if left := testkit.Run(t, "ip", "netns", "list"); strings.Contains(left, "gf-lab-intr") {
		t.Errorf("left behind: %s", left)
	}
}

// interrupter is a terminal whose user presses Ctrl-C when a text appears.
type interrupter struct {
	bytes.Buffer
	at string
	do func()
}

func (i *interrupter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), i.at) {
		i.do()
	}
	return i.Buffer.Write(p)
}
