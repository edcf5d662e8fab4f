package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"grayfail/detector"
	"grayfail/event"
	"grayfail/internal/atomicfile"
)

const (
	// asideShown is how long a state that was set aside is shown as a problem.
	asideShown = time.Hour
	// busyShare: a disk that needs long for one save is asked less often.
	busyShare = 20
	// quietInterval is how often a state in which nothing was judged is saved:
	// when it was is in it too.
	quietInterval = time.Minute
)

// stateKeeper carries the detector's baselines and open episodes over restarts.
// Nothing that goes wrong here stops the exporter: it is shown, and tried again.
type stateKeeper struct {
	dir      string
	interval time.Duration
	pipe     *pipeline
	status   *statuses
	log      zerolog.Logger
	now      func() time.Time
	boot     func() bootTime

	lock     *os.File // held while no other exporter may use dir
	inUse    bool     // another one does: neither read nor write
	buf      []byte
	saved    detector.Stats // when last saved
	savedAt  time.Time
	nextTry  time.Time
	previous time.Time // when the file of before was last made

	mu    sync.Mutex
	aside map[string]asideProblem // by reason
}

type asideProblem struct {
	detail string
	until  time.Time
}

// bootTime is a clock that nobody sets: the time since the boot of that id.
type bootTime struct {
	id    string
	since time.Duration
}

func readBootTime() bootTime {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var ts unix.Timespec
	if err != nil || len(id) < 36 || unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return bootTime{} // then a clock set while nothing ran goes unnoticed
	}
	return bootTime{string(id[:36]), time.Duration(ts.Nano())}
}

func (b bootTime) note() string {
	if b.id == "" {
		return ""
	}
	return fmt.Sprintf("%s %d", b.id, b.since)
}

// stepSince is by how much more than passed the clock has moved between a save
// and now; 0 when that cannot be told.
func (b bootTime) stepSince(note string, savedNS, nowNS int64) time.Duration {
	var id string
	var since int64
	if n, _ := fmt.Sscanf(note, "%s %d", &id, &since); n != 2 || id != b.id || since > int64(b.since) {
		return 0
	}
	return time.Duration(nowNS-savedNS) - (b.since - time.Duration(since))
}

// newStateKeeper takes up what is in dir. The detector must be new.
func newStateKeeper(dir string, interval time.Duration, pipe *pipeline, status *statuses, log zerolog.Logger) *stateKeeper {
	k := &stateKeeper{
		dir: dir, interval: interval, pipe: pipe, status: status, log: log,
		now: time.Now, boot: readBootTime, aside: map[string]asideProblem{},
	}
	k.open()
	return k
}

// open takes the directory, then the state.
func (k *stateKeeper) open() {
	started := k.now()
	lock, err := lockDir(k.dir)
	k.lock = lock
	if errors.Is(err, unix.EWOULDBLOCK) {
		k.inUse = true
		k.status.tried("state", 0, 0, nil, &event.Problem{Reason: "in_use", Detail: fmt.Sprintf("another exporter keeps its state in %s: baselines are not read and not saved; give each a --state.dir of its own", k.dir)})
		return
	}
	k.load()
	k.status.tried("state", k.now().Sub(started), 0, k.problems(), nil)
}

// load restores the newest file that is sound.
func (k *stateKeeper) load() {
	for _, name := range []string{stateFile, previousFile} {
		data, err := readStateFile(k.dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = k.restore(data)
		}
		if err == nil {
			k.previous = k.now()
			if name == previousFile {
				k.log.Info().Msg("state: the file of before is used")
			}
			return
		}
		k.setAside(name, err)
	}
}

func (k *stateKeeper) restore(data []byte) error {
	k.pipe.mu.Lock()
	defer k.pipe.mu.Unlock()
	note, savedNS, err := k.pipe.det.Restore(data)
	if err != nil {
		return err
	}
	now := k.now()
	step := k.boot().stepSince(note, savedNS, now.UnixNano())
	if step.Abs() >= clockStep {
		k.pipe.det.ClockStep(int64(step))
	}
	// Else the first events would lie in the future of the detector.
	k.pipe.det.Advance(now.UnixNano())
	st := k.pipe.det.Stats()
	k.log.Info().Int("models", st.Models).Int("strata", st.Strata).
		Str("age", now.Sub(time.Unix(0, savedNS)).Round(time.Second).String()).
		Msgf("state: baselines of %d models restored", st.Models)
	return nil
}

// setAside moves a file that cannot be used out of the way and says so.
func (k *stateKeeper) setAside(name string, why error) {
	reason := "unreadable"
	switch {
	case errors.Is(why, detector.ErrStateForeign):
		reason = "foreign"
	case errors.Is(why, detector.ErrStateNewer):
		reason = "newer_version"
	case errors.Is(why, detector.ErrStateTruncated), errors.Is(why, detector.ErrStateCorrupt):
		reason = "corrupt"
	}
	detail := fmt.Sprintf("%s/%s: %v; ", k.dir, name, why)
	if to, err := asideFile(k.dir, name, k.now()); err == nil {
		detail += "it was set aside as " + to
	} else {
		detail += fmt.Sprintf("it cannot be set aside: %v", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if before := k.aside[reason].detail; before != "" {
		detail = before + "; " + detail
	}
	k.aside[reason] = asideProblem{detail, k.now().Add(asideShown)}
}

func (k *stateKeeper) problems() (all []event.Problem) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, reason := range slices.Sorted(maps.Keys(k.aside)) {
		if p := k.aside[reason]; k.now().Before(p.until) {
			all = append(all, event.Problem{Reason: reason, Detail: p.detail})
		}
	}
	return all
}

// run saves until ctx ends.
func (k *stateKeeper) run(ctx context.Context) {
	if k == nil {
		return
	}
	tick := time.NewTicker(k.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !k.now().Before(k.nextTry) {
				k.save(false)
			}
		}
	}
}

// save writes the state if something was judged since, or always.
func (k *stateKeeper) save(always bool) {
	if k == nil || k.inUse {
		return
	}
	started := time.Now()
	k.pipe.mu.Lock()
	now := k.pipe.det.Stats()
	same := now.Requests == k.saved.Requests && now.Adopted == k.saved.Adopted && now.ClockSteps == k.saved.ClockSteps &&
		now.Rebased == k.saved.Rebased && now.Legs == k.saved.Legs
	if same && !always && k.now().Sub(k.savedAt) < quietInterval {
		k.pipe.mu.Unlock()
		k.status.tried("state", time.Since(started), 0, k.problems(), nil)
		return
	}
	k.buf = k.pipe.det.Save(k.buf[:0], k.boot().note())
	k.pipe.mu.Unlock()

	err := k.write()
	took := time.Since(started)
	k.nextTry = k.now().Add(min(busyShare*took, quietInterval) - k.interval)
	if err != nil {
		k.status.tried("state", took, 0, k.problems(), &event.Problem{
			Reason: writeProblem(err), Detail: fmt.Sprintf("baselines are not saved, a restart would lose what was learned since: %v", err)})
		return
	}
	k.saved, k.savedAt = now, k.now()
	k.status.tried("state", took, 0, k.problems(), nil)
}

// previousAge is how old the file of before may become: one that is as new as
// the file itself would share its damage.
const previousAge = 10 * time.Minute

func (k *stateKeeper) write() error {
	if k.now().Sub(k.previous) >= previousAge {
		if err := keepPrevious(k.dir); err != nil {
			return err
		}
		k.previous = k.now()
	}
	return atomicfile.Write(statePath(k.dir, stateFile), k.buf)
}

func writeProblem(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "disk_full"
	case errors.Is(err, unix.EROFS):
		return "read_only"
	case errors.Is(err, fs.ErrPermission):
		return "no_permission"
	}
	return "write_failed"
}

// close saves a last time and lets the directory go.
func (k *stateKeeper) close() {
	if k == nil {
		return
	}
	k.save(true)
	if k.lock != nil {
		_ = k.lock.Close()
	}
}
