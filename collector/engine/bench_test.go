package engine

import "testing"

// BenchmarkChunk is the cost of one streamed token.
func BenchmarkChunk(b *testing.B) {
	for _, name := range []string{"chat_stream", "native_stream", "chat_stream_timings_per_token"} {
		b.Run(name, func(b *testing.B) {
			ex := load(b, fixtures, name)
			piece := ex.pieces[5]
			o := ex.open()
			b.SetBytes(int64(len(piece)))
			b.ReportAllocs()
			at := int64(1)
			for b.Loop() {
				at++
				o.ResponseBody(piece, at)
			}
		})
	}
}

// BenchmarkCall is the cost of observing a whole call of 24 tokens.
func BenchmarkCall(b *testing.B) {
	ex := load(b, fixtures, "chat_stream_usage")
	b.ReportAllocs()
	for b.Loop() {
		o := ex.open()
		for i, p := range ex.pieces {
			o.ResponseBody(p, pieceNS(i))
		}
		o.Finish(EndedClean, pieceNS(99))
	}
}

// BenchmarkHuge is the cost of a byte of a long plain answer.
func BenchmarkHuge(b *testing.B) {
	ex := stream("application/json")
	o := ex.open()
	o.ResponseBody([]byte(`{"choices":[{"message":{"content":"`), 1)
	piece := make([]byte, 32<<10)
	for i := range piece {
		piece[i] = 'x'
	}
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		o.ResponseBody(piece, 1)
	}
}
