package ebpf

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// emptyProgram attaches a program that does nothing where segments are
// received: what the kernel says it costs is what measuring costs.
func emptyProgram(b *testing.B) *ebpf.Program {
	b.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "empty", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "tcp_probe", License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = prog.Close() })
	l, err := link.AttachTracing(link.TracingOptions{Program: prog})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return prog
}

// BenchmarkCost reports what one run of the two hot programs costs by the
// kernel's own measure, how often they run in a turn, and beside it what that
// measure says of an empty program (ns/empty). Aims, above empty: a watched send 300 ns, a watched
// segment 200 ns, an unwatched one 30 ns.
func BenchmarkCost(b *testing.B) {
	for _, bench := range []struct {
		name           string
		port           uint16
		request, reply int // bytes
	}{
		{"watched", labPort, 321, 4096},
		{"watched large request", labPort, 164_000, 9}, // llama.cpp's first worker, each token
		{"unwatched", labPort + 1, 321, 4096},
	} {
		for _, hook := range []string{"tp_btf/tcp_sendmsg_locked", "tp_btf/sock_send_length", "fentry/tcp_sendmsg"} {
			if !accepted(hook) {
				continue
			}
			b.Run(bench.name+"/"+strings.ReplaceAll(hook, "/", "_"), func(b *testing.B) {
				l := newLab(b)
				opts := l.options(hook)
				opts.Ports = []uint16{bench.port}
				p := load(b, opts)
				empty := emptyProgram(b)
				measuring, err := EnableStats()
				if err != nil {
					b.Fatal(err)
				}
				defer measuring.Close()
				client, server := l.dial(b, families[0], labPort)
				var events Events
				b.ResetTimer()
				for i := range b.N {
					client.send(bench.request)
					server.receive(bench.request)
					server.send(bench.reply)
					client.receive(bench.reply)
					if i%1000 == 0 {
						events.Reset()
						if err := p.Drain(&events); err != nil {
							b.Fatal(err)
						}
					}
				}
				if s, err := empty.Stats(); err == nil {
					b.ReportMetric(float64(s.Runtime.Nanoseconds())/float64(s.RunCount), "ns/empty")
				}
				for _, s := range p.Stats() {
					switch s.Name {
					case hook:
						b.ReportMetric(float64(s.RunTime.Nanoseconds())/float64(s.Runs), "ns/send")
						b.ReportMetric(float64(s.Runs)/float64(b.N), "sends/op")
					case "tp_btf/tcp_probe":
						b.ReportMetric(float64(s.RunTime.Nanoseconds())/float64(s.Runs), "ns/receive")
						b.ReportMetric(float64(s.Runs)/float64(b.N), "receives/op")
					}
				}
			})
		}
	}
}
