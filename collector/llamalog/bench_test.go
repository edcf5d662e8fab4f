package llamalog

import (
	"bytes"
	"testing"
)

// BenchmarkParser reads a server's log, and text that is none of its lines.
func BenchmarkParser(b *testing.B) {
	for name, log := range map[string][]byte{
		"server":  fixture(b, "llama.cpp-0.7.0-b11669/server-two-slots.log"),
		"docker":  fixture(b, "composed/docker-json-file.log"),
		"verbose": bytes.Repeat([]byte("0.00.020.748 D srv  params_from_: some words about a request that say nothing of its times\n"), 100),
	} {
		b.Run(name, func(b *testing.B) {
			p := NewParser(Config{Name: "log"}, true)
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				p.Feed(log, arrived)
			}
		})
	}
}
