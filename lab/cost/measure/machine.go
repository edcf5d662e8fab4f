package measure

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"grayfail/lab/cost"
)

// timed runs f and notes where, when and under what load it ran.
func timed(ctx context.Context, s *cost.Section, f func() error) error {
	start := time.Now()
	s.Machine = machine(ctx, start)
	err := f()
	s.Machine.LoadAfter = load()
	s.Took = time.Since(start)
	return err
}

func machine(ctx context.Context, now time.Time) cost.Machine {
	m := cost.Machine{
		Date: now.UTC().Format("2006-01-02 15:04 UTC"), Cores: runtime.NumCPU(), CPU: cpuModel(), Go: runtime.Version(), LoadBefore: load(),
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		m.Revision = strings.TrimSpace(string(out))
	}
	return m
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// load average of one minute; 0 where /proc has none.
func load() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// Benchmarks is the section whose figures come from go test -bench, on this
// machine.
func Benchmarks(ctx context.Context) cost.Section {
	s := cost.Section{ID: "bench", Title: "Inside the exporter, by size", Method: benchMethod, Machine: machine(ctx, time.Now())}
	s.Machine.LoadAfter = s.Machine.LoadBefore
	return s
}

const benchMethod = "`go test -bench`: the shortest of the repetitions, since what else runs on the machine only adds; of the hooks the median. The load is that after them. Sizes are in the benchmarks' names; [bench.txt](bench.txt) has all of them with their spread and what they allocate."
