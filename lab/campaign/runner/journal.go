package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"grayfail/internal/atomicfile"
	"grayfail/lab/campaign/folder"
	"grayfail/lab/campaign/report"
	"grayfail/lab/campaign/spec"
)

// active is the file that names the condition in force. It is written before
// the condition is made and removed after it is cleared: what is there at a
// start was left by a kill.
const active = "active.json"

// journal is the campaign's folder.
type journal struct {
	dir  string
	spec *spec.Spec
	runs *os.File
	// played has the runs that need not be played again: valid ones, and those
	// that are invalid for another reason than an interrupt.
	played map[int]int // run -> records
}

// interrupted is the reason of records that a later start plays again.
const interrupted = "interrupted"

// openJournal makes the folder or goes on with it. left is the condition that a
// kill left in force, nil for none.
func openJournal(dir string, s *spec.Spec, text []byte) (j *journal, left *spec.Condition, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, folder.Spec)
	before, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, err := os.Stat(filepath.Join(dir, folder.Runs)); err == nil {
			return nil, nil, fmt.Errorf("%s holds %s and no %s: it is no folder of a campaign", dir, folder.Runs, folder.Spec)
		}
		plan, err := s.PlanJSON()
		if err != nil {
			return nil, nil, err
		}
		if err := errors.Join(atomicfile.Write(filepath.Join(dir, folder.Plan), plan), atomicfile.Write(path, text)); err != nil {
			return nil, nil, err
		}
	case err != nil:
		return nil, nil, err
	case !bytes.Equal(before, text):
		return nil, nil, fmt.Errorf("%s is of another specification than the one given: nothing may change after the first run; take another --out", path)
	}
	j = &journal{dir: dir, spec: s, played: make(map[int]int)}
	if err := j.openRuns(); err != nil {
		return nil, nil, err
	}
	if left, err = j.leftover(); err != nil {
		return nil, nil, errors.Join(err, j.close())
	}
	return j, left, nil
}

// openRuns reads what was played, and opens the file for more. A last line that
// was cut is taken off: it counts as not played.
func (j *journal) openRuns() error {
	path := filepath.Join(j.dir, folder.Runs)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("%s: in use by another campaign: %w", path, err), file.Close())
	}
	runs, err := report.Read(file)
	if err == nil && runs.Cut {
		err = cutLastLine(file)
	}
	if err == nil {
		_, err = file.Seek(0, 2)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	for i := range runs.Runs {
		r := &runs.Runs[i]
		if r.SpecHash != j.spec.Hash {
			return errors.Join(fmt.Errorf("%s: run %d is of another specification", path, r.Run), file.Close())
		}
		if r.Valid || r.InvalidReason != interrupted {
			j.played[r.Run]++
		}
	}
	j.runs = file
	return nil
}

func cutLastLine(file *os.File) error {
	data, err := os.ReadFile(file.Name())
	if err != nil {
		return err
	}
	return file.Truncate(int64(bytes.LastIndexByte(data, '\n') + 1))
}

// done says whether a run has all its records.
func (j *journal) done(run int) bool { return j.played[run] >= j.spec.Concurrency }

// record appends runs, each as a whole line.
func (j *journal) record(runs []report.Run) error {
	var lines bytes.Buffer
	for i := range runs {
		if err := runs[i].Check(); err != nil {
			return fmt.Errorf("run %d: %w", runs[i].Run, err)
		}
		line, err := json.Marshal(&runs[i])
		if err != nil {
			return err
		}
		lines.Write(append(line, '\n'))
	}
	if _, err := j.runs.Write(lines.Bytes()); err != nil {
		return err
	}
	return j.runs.Sync()
}

func (j *journal) close() error { return j.runs.Close() }

// begin notes that a condition is about to be made.
func (j *journal) begin(c *spec.Condition) error {
	if c.Kind() == "" {
		return nil
	}
	return atomicfile.Write(filepath.Join(j.dir, active), fmt.Appendf(nil, "%q\n", c.Name))
}

// end notes that it is cleared.
func (j *journal) end() error {
	err := os.Remove(filepath.Join(j.dir, active))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// leftover is the condition that active names.
func (j *journal) leftover() (*spec.Condition, error) {
	path := filepath.Join(j.dir, active)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var name string
	if err := json.Unmarshal(text, &name); err == nil {
		for i := range j.spec.Conditions {
			if j.spec.Conditions[i].Name == name {
				return &j.spec.Conditions[i], nil
			}
		}
	}
	return nil, fmt.Errorf("%s names no condition of this campaign: look whether the network is as it should be, then remove that file", path)
}

// tidy clears a leftover.
func (j *journal) tidy(left *spec.Condition) error {
	ctx, cancel := context.WithTimeout(context.Background(), clearTime)
	defer cancel()
	if err := newFault(left).clear(ctx); err != nil {
		return fmt.Errorf("condition %s, left by an earlier start, cannot be cleared: %w", left.Name, err)
	}
	return j.end()
}
