package lab_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"grayfail/lab"
)

// TestInjectors: each fault slows requests, proves by a counter that it acted,
// refuses to say so when it did not, and is gone after Clear.
func TestInjectors(t *testing.T) {
	c := start(t, lab.Options{Instance: "inject", Engine: lab.EngineStandin})
	ctx := t.Context()
	usual := request(t, c).Rate()
	for _, make := range []func() (lab.Injector, error){
		func() (lab.Injector, error) { return c.NewLoss(lab.LegB, lab.Replies, 5) },
		func() (lab.Injector, error) { return c.NewLoss(lab.LegA, lab.Requests, 10) },
		func() (lab.Injector, error) { return c.NewRateLimit(lab.LegB, lab.Replies, 20e6) },
		func() (lab.Injector, error) { return c.NewRateLimit(lab.LegA, lab.Requests, 2e6) },
		func() (lab.Injector, error) { return c.NewPause(lab.LegB, 20, 20*time.Millisecond) },
		func() (lab.Injector, error) { return c.NewPause("", 20, 20*time.Millisecond) },
	} {
		in, err := make()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(in.String(), func(t *testing.T) {
			if err := c.Inject(ctx, in); err != nil {
				t.Fatal(err)
			}
			if _, isPause := in.(*lab.Pause); !isPause { // a pause needs no traffic to act
				if e, err := in.Acted(); !errors.Is(err, lab.ErrDidNotAct) {
					t.Errorf("before any traffic: %v, %v; want ErrDidNotAct", e, err)
				}
			}
			var e lab.Evidence
			slowest := usual
			wait(t, "the fault to act", func() bool {
				slowest = min(slowest, request(t, c).Rate())
				e, err = in.Acted()
				return err == nil && slowest < 0.7*usual
			})
			t.Logf("%s; slowest request %.0f of %.0f tok/s", e, slowest, usual)
			for range 2 {
				if err := in.Clear(); err != nil {
					t.Errorf("Clear: %v", err)
				}
			}
			wait(t, "the usual rate", func() bool { return request(t, c).Rate() > 0.8*usual })
		})
	}
	for _, look := range [][]string{{"nft", "list", "ruleset"}, {"sh", "-c", "tc qdisc show | grep -v noqueue"}} {
		if out, _ := c.ExecIn(ctx, c.Coordinator, look[0], look[1:]...); out != "" {
			t.Errorf("%v after every Clear: %q", look, out)
		}
	}
}

// TestForgottenInjector: Close clears what the caller did not, a stopped worker
// included.
func TestForgottenInjector(t *testing.T) {
	c := start(t, lab.Options{Instance: "forgot", Engine: lab.EngineStandin})
	pause, err := c.NewPause(lab.LegA, 1, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Inject(t.Context(), pause); err != nil {
		t.Fatal(err)
	}
	owned := pids(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range owned {
		if running(pid) {
			t.Errorf("pid %d still runs", pid)
		}
	}
	if left := leftovers(t, "forgot"); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// TestLossOfAll: a path that carries nothing, which nft spells differently.
func TestLossOfAll(t *testing.T) {
	c := start(t, lab.Options{Instance: "dead", Engine: lab.EngineStandin})
	loss, err := c.NewLoss(lab.LegB, lab.Replies, 100)
	if err == nil {
		err = c.Inject(t.Context(), loss)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if a := c.Request(ctx, lab.RequestOptions{}); a.Err == nil {
		t.Error("a request was answered over a dead path")
	}
	if e, err := c.Eject(loss); err != nil || e.Count == 0 || e.Count != e.Total {
		t.Errorf("%s, %v", e, err)
	}
	if a := c.Request(t.Context(), lab.RequestOptions{}); a.Err != nil {
		t.Errorf("after it is mended: %v", a.Err)
	}
}

func TestInjectorLimits(t *testing.T) {
	c := start(t, lab.Options{Instance: "limits", Engine: lab.EngineStandin})
	for name, make := range map[string]func() (lab.Injector, error){
		"loss 0%":       func() (lab.Injector, error) { return c.NewLoss(lab.LegB, lab.Replies, 0) },
		"loss 101%":     func() (lab.Injector, error) { return c.NewLoss(lab.LegB, lab.Replies, 101) },
		"loss on rpc-x": func() (lab.Injector, error) { return c.NewLoss("rpc-x", lab.Replies, 5) },
		"0 bit/s":       func() (lab.Injector, error) { return c.NewRateLimit(lab.LegB, lab.Replies, 0) },
		"never running": func() (lab.Injector, error) { return c.NewPause(lab.LegB, 0, time.Second) },
		"pause rpc-x":   func() (lab.Injector, error) { return c.NewPause("rpc-x", 50, time.Second) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
