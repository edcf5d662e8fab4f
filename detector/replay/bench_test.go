package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"grayfail/detector"
	"grayfail/detector/replay"
)

// recorded is a recording of n requests, a second apart, with exchanges each.
func recorded(n, exchanges int) string {
	const exchange = `{"type":"exchange","leg":"rpc-%d","socket":%d,"time_ns":%d,"duration_ns":400000,"first_byte_ns":300000,"request_bytes":321,"reply_bytes":2048}` + "\n"
	var b strings.Builder
	for i := range int64(n) {
		end := int64(1_800_000_000e9) + i*1e9
		for k := range int64(exchanges) {
			fmt.Fprintf(&b, exchange, k%2, k%2+1, end-500e6+k*400e6/int64(exchanges))
		}
		fmt.Fprintf(&b, `{"id":"%d","model":"m","start_ns":%d,"first_token_ns":%d,"end_ns":%d,"generated_tokens":32,"decode_tokens_per_second":%d}`+"\n", i, end-600e6, end-550e6, end, 60+i%3)
	}
	return b.String()
}

// BenchmarkRun replays requests alone and with the exchanges that the engine
// makes in a second of 100 tokens.
func BenchmarkRun(b *testing.B) {
	for _, exchanges := range []int{0, 100} {
		for _, n := range []int{100, 300, 1000} {
			b.Run(fmt.Sprintf("%d exchanges each/requests=%d", exchanges, n), func(b *testing.B) {
				text := recorded(n, exchanges)
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					res, err := replay.Run(detector.DefaultConfig(), input("in", text))
					if err != nil || res.BadLines != 0 || len(res.Requests) != 2*n { // decode and prefill
						b.Fatalf("%d requests, %d bad lines, %v %v", len(res.Requests), res.BadLines, res.Bad, err)
					}
				}
				b.ReportMetric(float64(n*(1+exchanges))*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}
