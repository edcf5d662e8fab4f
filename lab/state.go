package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// state is what the next start of an instance needs to know if this one is
// killed: its processes. Namespaces go by their names.
type state struct {
	Boot      string       `json:"boot_id"`
	Processes []processRef `json:"processes"`
}

// processRef tells a process from a later one with the same pid.
type processRef struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// StartTicks is field 22 of /proc/PID/stat: clock ticks since boot.
	StartTicks uint64 `json:"start_ticks"`
}

func statePath(dir string) string { return filepath.Join(dir, "state.json") }

func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

func (s *state) save(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	tmp := statePath(dir) + ".new"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, statePath(dir))
}

// killLeftovers ends the processes of a killed owner that still run: those
// with the recorded start time, no other with the same pid.
func killLeftovers(dir string) error {
	data, err := os.ReadFile(statePath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%s: %w", statePath(dir), err)
	}
	if s.Boot != bootID() {
		return nil
	}
	for _, p := range s.Processes {
		if err := p.kill(5 * time.Second); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the process and waits until it is gone; it is not our child.
func (p processRef) kill(limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		if !p.runs() {
			return nil
		}
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end left-over %s (pid %d): %w", p.Name, p.PID, err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("left-over %s (pid %d) does not end", p.Name, p.PID)
		}
	}
}

// runs is false when the process is gone or its pid has passed to another.
func (p processRef) runs() bool {
	_, start, err := procStat(p.PID)
	return err == nil && start == p.StartTicks
}

// procStat gives the state letter (field 3) and the start time (field 22) of
// /proc/PID/stat; a zombie counts as gone.
func procStat(pid int) (letter byte, startTicks uint64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	return parseProcStat(string(data))
}

var errGone = errors.New("process has ended")

func parseProcStat(s string) (letter byte, startTicks uint64, err error) {
	// The command (field 2) is in parentheses and may hold any character.
	i := strings.LastIndexByte(s, ')')
	if i < 0 {
		return 0, 0, fmt.Errorf("stat line without command: %q", s)
	}
	fields := strings.Fields(s[i+1:])
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("stat line with %d fields after the command: %q", len(fields), s)
	}
	if len(fields[0]) != 1 || !strings.Contains("RSDTtWXxKPIZ", fields[0]) { // proc(5), all versions
		return 0, 0, fmt.Errorf("stat line with state %q", fields[0])
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return fields[0][0], 0, errGone
	}
	startTicks, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0][0], startTicks, err
}
