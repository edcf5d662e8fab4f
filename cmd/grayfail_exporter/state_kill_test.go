package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"grayfail/detector"
	"grayfail/event"
	"grayfail/internal/testkit"
)

// startChild runs an exporter in a process of its own, which stop kills.
func startChild(t *testing.T, args ...string) *exporter {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"serve", "--web.listen-address", "127.0.0.1:0", "--sample.interval", "50ms"}, args...)...)
	cmd.Env = append(os.Environ(), "GRAYFAIL_EXPORTER_MAIN=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e := &exporter{t: t, log: &testkit.Buffer{}}
	cmd.Stderr = e.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e.stop = sync.OnceValue(func() int {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode()
	})
	t.Cleanup(func() { e.stop() })
	return e
}

// TestKilledExporterKeepsBaselines kills the exporter at random instants, while
// requests come in and its state is saved all the time. Each start finds at
// least what the one before had found, and in the middle of a fault the same
// episode. GRAYFAIL_KILLS sets how often.
func TestKilledExporterKeepsBaselines(t *testing.T) {
	kills := 20
	if n, err := strconv.Atoi(os.Getenv("GRAYFAIL_KILLS")); err == nil {
		kills = n
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	args := stateArgs(t, dir)

	e := startExporter(t, args...)
	e.push(ended("base", 30, 100))
	e.verdicts(20, "ok")
	e.stop()

	samples, learned, slow, episode := 30, 0, 0, ""
	for kill := range kills {
		faulty := kill >= kills/2
		e := startChild(t, args...)
		if random.IntN(4) == 0 { // before it has come up, or while it does
			<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
			e.stop()
			continue
		}
		e.ready()
		b, err := e.decodeBaseline()
		if episode != "" { // what was learned just before it is dropped
			samples -= detector.DefaultConfig().LookBack
		}
		if err != nil || b.Samples < samples || b.State == event.BaselineWarming || b.Anchor < 95 || b.Anchor > 105 || b.Rate < 95 || b.Rate > 105 || b.Adopted != 0 {
			t.Fatalf("after %d kills: %+v, %v; want at least %d samples\n%s", kill, b, err, samples, e.log)
		}
		samples, learned = b.Samples, max(learned, b.Samples)
		if list := e.episodes(); episode != "" {
			if len(list) != 1 || list[0].ID != episode || list[0].EndNS != 0 || list[0].Slow < slow || b.State != event.BaselineFrozen {
				t.Fatalf("after %d kills: episodes %+v, want %s open with at least %d slow; baseline %+v", kill, list, episode, slow, b)
			}
			slow = list[0].Slow
		}
		_, body := e.get("/metrics")
		if problems := grep(body, `problem_info{collector="state"`); problems != "" {
			t.Fatalf("after %d kills: %s", kill, problems)
		}
		load, stopping := make(chan struct{}), make(chan struct{})
		stopLoad := sync.OnceFunc(func() { close(stopping); <-load })
		t.Cleanup(stopLoad)
		go func() {
			defer close(load)
			for i := 0; ; i++ {
				select {
				case <-stopping:
					return
				default:
				}
				rate := 97 + float64(i%7)
				if faulty {
					rate = 35 + float64(i%7)
				}
				text := ended(fmt.Sprintf("k%d-%d", kill, i), 5, rate)
				if resp, err := http.Post(e.url+"/api/v1/requests", "application/json", strings.NewReader(text)); err == nil {
					_ = resp.Body.Close()
				}
			}
		}()
		if faulty && episode == "" {
			eventually(t, func() error {
				if list := e.episodes(); len(list) == 1 {
					return nil
				}
				return fmt.Errorf("no episode yet")
			})
			data := func() []event.Episode { // on the disk too
				raw, err := os.ReadFile(filepath.Join(dir, stateFile))
				if err != nil {
					return nil
				}
				d := detector.New(detector.DefaultConfig())
				if _, _, err := d.Restore(raw); err != nil {
					t.Errorf("a reader found: %v", err)
				}
				return d.Episodes()
			}
			eventually(t, func() error {
				if list := data(); len(list) == 1 {
					episode, slow = list[0].ID, list[0].Slow
					return nil
				}
				return fmt.Errorf("not saved yet")
			})
		} else {
			<-time.After(time.Duration(random.IntN(400)) * time.Millisecond) // any instant will do
		}
		e.stop()
		stopLoad()
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 4 { // state, .previous, lock, and .new of the last kill
		t.Errorf("left behind: %v, %v", entries, err)
	}
	final := startExporter(t, args...)
	if b, err := final.decodeBaseline(); err != nil || b.Samples < samples || b.Anchor < 95 {
		t.Errorf("at the end: %+v, %v", b, err)
	}
	if learned <= 30 || slow <= 3 {
		t.Errorf("nothing was learned or flagged while it was killed: at most %d samples, %d slow", learned, slow)
	}
	t.Logf("%d kills: %d samples, an episode of %d slow requests", kills, learned, slow)
}
