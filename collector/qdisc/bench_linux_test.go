package qdisc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/internal/testkit"
)

// batch runs a batch of ip or tc commands in a namespace.
func batch(b *testing.B, program, ns string, lines []string) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "batch")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	testkit.Run(b, program, "-n", ns, "-batch", path)
}

// BenchmarkCollect1000 reads 1,000 real qdiscs: all on one device (an htb with
// many leaves), and two each on 500 devices.
func BenchmarkCollect1000(b *testing.B) {
	for _, shape := range []struct {
		name string
		make func(b *testing.B, ns string)
	}{
		{"one device", func(b *testing.B, ns string) {
			testkit.Run(b, "ip", "-n", ns, "link", "add", "q0", "type", "veth", "peer", "name", "q1")
			testkit.Run(b, "tc", "-n", ns, "qdisc", "add", "dev", "q0", "root", "handle", "1:", "htb")
			var lines []string
			for i := 1; i < 1000; i++ {
				lines = append(lines, fmt.Sprintf("class add dev q0 parent 1: classid 1:%x htb rate 1mbit", i))
			}
			batch(b, "tc", ns, lines)
		}},
		{"500 devices", func(b *testing.B, ns string) {
			var links, qdiscs []string
			for i := range 250 {
				links = append(links, fmt.Sprintf("link add p%d type veth peer name r%d", i, i))
				for _, dev := range []string{fmt.Sprintf("p%d", i), fmt.Sprintf("r%d", i)} {
					qdiscs = append(qdiscs, "qdisc add dev "+dev+" root tbf rate 1mbit burst 10k limit 10k")
				}
			}
			batch(b, "ip", ns, links)
			batch(b, "tc", ns, qdiscs)
		}},
	} {
		b.Run(shape.name, func(b *testing.B) {
			name := testkit.Netns(b, "gf-qdisc-bench")
			shape.make(b, name)
			ns, err := netns.ByName(name)
			if err != nil {
				b.Fatal(err)
			}
			c := New(Options{})
			b.Run("kernel's dump alone", func(b *testing.B) {
				request, err := qdiscRequest()
				if err != nil {
					b.Fatal(err)
				}
				testkit.InNetns(b, name, func() error {
					for b.Loop() {
						if _, err := testkit.CaptureDump(unix.NETLINK_ROUTE, unix.RTM_GETQDISC, request); err != nil {
							return err
						}
					}
					return nil
				})
			})
			b.Run("collect", func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					list, problems, err := c.Collect(1, []netns.Namespace{ns})
					if err != nil || len(problems) != 0 {
						b.Fatal(problems, err)
					}
					n = len(list)
				}
				if n < 1000 {
					b.Fatalf("%d qdiscs", n)
				}
				b.ReportMetric(float64(n), "qdiscs")
			})
		})
	}
}
