package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"grayfail/detector"
	"grayfail/event"
	"grayfail/internal/testkit"
)

const pushOn = "requests: {push: {enabled: true}}"

func stateArgs(t testing.TB, dir string) []string {
	return []string{"--config.file", writeFile(t, pushOn), "--state.dir", dir, "--state.interval", "10ms"}
}

// ended makes n request records that ended long enough ago to be judged at once.
func ended(prefix string, n int, rate float64) string {
	var b strings.Builder
	end := time.Now().Add(-3 * time.Second).UnixNano()
	for i := range n {
		fmt.Fprintf(&b, `{"id":"%s-%d","model":"m","end_ns":%d,"generated_tokens":32,"decode_tokens_per_second":%g,"concurrency":1}`+"\n", prefix, i, end+int64(i), rate)
	}
	return b.String()
}

// verdicts waits for n verdicts of a kind on decode phases.
func (e *exporter) verdicts(n int, verdict string) {
	e.t.Helper()
	want := fmt.Sprintf(`grayfail_request_verdicts_total{model="m",phase="decode",source="push",verdict=%q} %d`, verdict, n)
	eventually(e.t, func() error {
		if _, body := e.get("/metrics"); !strings.Contains(body, want+"\n") {
			return fmt.Errorf("no %s in:\n%s", want, grep(body, "verdicts_total"))
		}
		return nil
	})
}

func (e *exporter) push(text string) {
	e.t.Helper()
	if code, body := e.post("/api/v1/requests", text); code != http.StatusAccepted {
		e.t.Fatalf("push: %d %s", code, body)
	}
}

// decodeBaseline is the one baseline of decode, if it is there.
func (e *exporter) decodeBaseline() (b event.Baseline, err error) {
	_, body := e.get("/api/v1/baselines")
	var answer struct{ Baselines []event.Baseline }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return b, fmt.Errorf("%w: %s", err, body)
	}
	for _, b := range answer.Baselines {
		if b.Phase == event.PhaseDecode {
			return b, nil
		}
	}
	return b, fmt.Errorf("no baseline in %s", body)
}

func (e *exporter) episodes() (list []event.Episode) {
	e.t.Helper()
	_, body := e.get("/api/v1/episodes")
	var answer struct{ Episodes []event.Episode }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		e.t.Fatalf("%v: %s", err, body)
	}
	return answer.Episodes
}

// TestRestartKeepsWhatWasLearned: the first request after a restart in the
// middle of a fault is judged, and the episode is the same one.
func TestRestartKeepsWhatWasLearned(t *testing.T) {
	args := stateArgs(t, filepath.Join(t.TempDir(), "state"))
	e := startExporter(t, args...)
	e.push(ended("base", 20, 100) + ended("slow", 4, 40))
	e.verdicts(4, "slow")
	var before []event.Episode
	eventually(t, func() error {
		if before = e.episodes(); len(before) != 1 {
			return fmt.Errorf("episodes %+v", before)
		}
		return nil
	})
	if code := e.stop(); code != exitOK {
		t.Fatalf("exit %d\n%s", code, e.log)
	}
	e = startExporter(t, args...)
	if !strings.Contains(e.log.String(), "baselines of 1 models restored") {
		t.Errorf("the log does not say so:\n%s", e.log)
	}
	b, err := e.decodeBaseline()
	if err != nil || b.State != event.BaselineFrozen || b.Rate != 100 || b.Samples < 17 {
		t.Errorf("baseline %+v, %v", b, err)
	}
	after := e.episodes()
	if len(before) != 1 || len(after) != 1 || after[0].ID != before[0].ID || after[0].StartNS != before[0].StartNS || after[0].EndNS != 0 {
		t.Errorf("episodes %+v, before the restart %+v", after, before)
	}
	e.push(ended("still", 2, 40))
	e.verdicts(2, "slow")
	if _, body := e.get("/metrics"); !strings.Contains(body, `grayfail_episode_active{model="m",phase="decode",source="push"} 1`) || !strings.Contains(body, `grayfail_collector_up{collector="state"} 1`) {
		t.Errorf("%s%s", grep(body, "episode_active"), grep(body, "collector"))
	}
}

// savedState is a state that a running exporter might have left.
func savedState(t *testing.T) []byte {
	t.Helper()
	d := detector.New(detector.DefaultConfig())
	now := time.Now().UnixNano() - 60e9
	for i := range 20 {
		d.Request(event.Request{ID: fmt.Sprint(i), Source: "push", Model: "m", EndNS: now + int64(i)*1e9, GeneratedTokens: 32, DecodeRate: 100, Outcome: event.OutcomeOK, Concurrency: 1})
	}
	d.Advance(now + 30e9)
	return d.Save(nil, "")
}

// TestUnusableStateIsSetAside: the file is kept under another name, the reason
// is shown, and the one of before is used where it is sound.
func TestUnusableStateIsSetAside(t *testing.T) {
	good := savedState(t)
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)/2] ^= 1
	newer := append([]byte(nil), good...)
	for _, c := range []struct {
		name, reason string
		make         func(path string) error
		previous     []byte
		restored     bool
	}{
		{name: "a flipped bit", reason: "corrupt", make: func(p string) error { return os.WriteFile(p, flipped, 0o600) }},
		{name: "cut off", reason: "corrupt", make: func(p string) error { return os.WriteFile(p, good[:100], 0o600) }},
		{name: "empty", reason: "foreign", make: func(p string) error { return os.WriteFile(p, nil, 0o600) }},
		{name: "another program's", reason: "foreign", make: func(p string) error { return os.WriteFile(p, []byte("SQLite format 3"), 0o600) }},
		{name: "a newer version's", reason: "newer_version", make: func(p string) error {
			return os.WriteFile(p, resealed(newer, 7), 0o600)
		}},
		{name: "a directory", reason: "foreign", make: func(p string) error { return os.Mkdir(p, 0o700) }},
		{name: "a pipe", reason: "foreign", make: func(p string) error { return unix.Mkfifo(p, 0o600) }},
		{name: "a link", reason: "unreadable", make: func(p string) error { return os.Symlink("/etc/hostname", p) }},
		{name: "a flipped bit, and a sound one of before", reason: "corrupt", previous: good, restored: true,
			make: func(p string) error { return os.WriteFile(p, flipped, 0o600) }},
		{name: "both damaged", reason: "corrupt", previous: flipped, make: func(p string) error { return os.WriteFile(p, flipped, 0o600) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(filepath.Join(dir, stateFile)); err != nil {
				t.Fatal(err)
			}
			if c.previous != nil {
				if err := os.WriteFile(filepath.Join(dir, previousFile), c.previous, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			e := startExporter(t, stateArgs(t, dir)...)
			_, body := e.get("/metrics")
			for _, want := range []string{`grayfail_collector_up{collector="state"} 1`, fmt.Sprintf(`grayfail_collector_problem_info{collector="state",reason=%q} 1`, c.reason)} {
				if !strings.Contains(body, want) {
					t.Errorf("no %s in:\n%s", want, grep(body, "collector"))
				}
			}
			if n := strings.Count(e.log.String(), `"collector":"state","reason":"`+c.reason+`"`); n != 1 || !strings.Contains(e.log.String(), "set aside as "+stateFile) {
				t.Errorf("%d log lines:\n%s", n, e.log)
			}
			if aside, err := filepath.Glob(filepath.Join(dir, stateFile+asideMark+"*")); err != nil || len(aside) != 1 { // that of before has another name
				t.Errorf("set aside: %v, %v", aside, err)
			}
			if b, err := e.decodeBaseline(); (err == nil && b.Samples == 20) != c.restored {
				t.Errorf("baseline %+v, %v", b, err)
			}
			e.push(ended("x", 11, 100))
			eventually(t, func() error {
				data, err := os.ReadFile(filepath.Join(dir, stateFile))
				if err != nil {
					return err
				}
				next := detector.New(detector.DefaultConfig())
				if _, _, err := next.Restore(data); err != nil || next.Stats().Models != 1 {
					return fmt.Errorf("saved: %d models, %w", next.Stats().Models, err)
				}
				return nil
			})
			if code := e.stop(); code != exitOK {
				t.Errorf("exit %d\n%s", code, e.log)
			}
		})
	}
}

// TestFullAndReadOnlyStateDir: shown, not fatal, and over when there is room.
func TestFullAndReadOnlyStateDir(t *testing.T) {
	testkit.RequireRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk did not fill up")
	}
	e := startExporter(t, stateArgs(t, dir)...)
	shown := func(up int, reason string) {
		t.Helper()
		eventually(t, func() error {
			_, body := e.get("/metrics")
			if !strings.Contains(body, fmt.Sprintf(`grayfail_collector_up{collector="state"} %d`, up)) || (reason != "") != strings.Contains(body, `{collector="state",reason="`+reason) {
				return fmt.Errorf("want %d %q:\n%s", up, reason, grep(body, `"state"`))
			}
			return nil
		})
	}
	e.push(ended("base", 10, 100) + ended("slow", 1, 40))
	e.verdicts(1, "slow")
	shown(0, "disk_full")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	shown(1, "")
	eventually(t, func() error { // busy while a file is written
		return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
	})
	e.push(ended("more", 1, 40))
	shown(0, "read_only")
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d\n%s", code, e.log)
	}
	e = startExporter(t, stateArgs(t, dir)...) // from what is there, and cannot write
	if b, err := e.decodeBaseline(); err != nil || b.Samples != 10 {
		t.Errorf("baseline %+v, %v", b, err)
	}
	shown(0, "read_only")
}

// TestTwoExportersOneStateDir: the second neither reads nor writes.
func TestTwoExportersOneStateDir(t *testing.T) {
	dir := t.TempDir()
	first := startExporter(t, stateArgs(t, dir)...)
	first.push(ended("base", 10, 100) + ended("slow", 1, 40))
	first.verdicts(1, "slow")
	second := startExporter(t, stateArgs(t, dir)...)
	_, body := second.get("/metrics")
	for _, want := range []string{`grayfail_collector_up{collector="state"} 0`, `grayfail_collector_problem_info{collector="state",reason="in_use"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in:\n%s", want, grep(body, `"state"`))
		}
	}
	second.stop()
	first.stop()
	third := startExporter(t, stateArgs(t, dir)...)
	if b, err := third.decodeBaseline(); err != nil || b.Samples != 10 {
		t.Errorf("baseline %+v, %v", b, err)
	}
}

// TestClockSetWhileStopped: the boot's own clock tells that no days went by.
func TestClockSetWhileStopped(t *testing.T) {
	boot := bootTime{"b", time.Hour}
	hour := int64(time.Hour)
	for _, c := range []struct {
		name         string
		note         string
		saved, wall  int64
		wantAbout    time.Duration
		wantNoChange bool
	}{
		{name: "ten minutes passed", note: "b " + strconv.FormatInt(hour-600e9, 10), saved: 100 * hour, wall: 100*hour + 600e9},
		{name: "set forward by a day meanwhile", note: "b " + strconv.FormatInt(hour-600e9, 10), saved: 100 * hour, wall: 124*hour + 600e9, wantAbout: 24 * time.Hour},
		{name: "set back by a day meanwhile", note: "b " + strconv.FormatInt(hour-600e9, 10), saved: 100 * hour, wall: 76*hour + 600e9, wantAbout: -24 * time.Hour},
		{name: "another boot", note: "a 5", saved: 100 * hour, wall: 200 * hour},
		{name: "no note", saved: 100 * hour, wall: 200 * hour},
		{name: "a note of nonsense", note: "b b b", saved: 100 * hour, wall: 200 * hour},
		{name: "a note from the future", note: "b 9000000000000000", saved: 100 * hour, wall: 200 * hour},
	} {
		if got := boot.stepSince(c.note, c.saved, c.wall); got != c.wantAbout {
			t.Errorf("%s: %s, want %s", c.name, got, c.wantAbout)
		}
	}
	if now := readBootTime(); now.id == "" || now.since <= 0 || now.stepSince(now.note(), 5e18, 5e18) != 0 {
		t.Errorf("%+v", now)
	}
}

// resealed gives a state another version and a checksum that fits.
func resealed(state []byte, version uint16) []byte {
	binary.LittleEndian.PutUint16(state[8:], version)
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(state[20:], crc32.Update(crc32.Checksum(state[:20], table), table, state[24:]))
	return state
}
