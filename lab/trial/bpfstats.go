package trial

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
)

// BPFProgram is what the kernel's statistics (BPF_ENABLE_STATS, Linux 5.8) say
// of one program of the exporter.
type BPFProgram struct {
	Name    string
	Runs    uint64
	RunTime time.Duration
}

// PerRun is the mean time of one run.
func (p BPFProgram) PerRun() time.Duration {
	if p.Runs == 0 {
		return 0
	}
	return p.RunTime / time.Duration(p.Runs)
}

// BPFPrograms reads the statistics of the programs a process holds open, by
// itself or through a link. They count while somebody has them enabled.
func BPFPrograms(pid int) ([]BPFProgram, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		return nil, err
	}
	var ids []ebpf.ProgramID
	for _, f := range files {
		data, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			continue // closed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if id, ok := programID(string(data)); ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var out []BPFProgram
	for _, id := range ids {
		p, err := readProgram(id)
		if err != nil {
			return nil, fmt.Errorf("BPF program %d: %w", id, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// programID finds "prog_id:\t12" in a file of /proc/PID/fdinfo.
func programID(fdinfo string) (ebpf.ProgramID, bool) {
	for line := range strings.Lines(fdinfo) {
		if text, ok := strings.CutPrefix(line, "prog_id:"); ok {
			id, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
			if err != nil {
				return 0, false
			}
			return ebpf.ProgramID(id), id != 0
		}
	}
	return 0, false
}

func readProgram(id ebpf.ProgramID) (BPFProgram, error) {
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return BPFProgram{}, err
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return BPFProgram{}, err
	}
	stats, err := prog.Stats()
	if err != nil {
		return BPFProgram{}, err
	}
	return BPFProgram{Name: info.Name, Runs: stats.RunCount, RunTime: stats.Runtime}, nil
}
