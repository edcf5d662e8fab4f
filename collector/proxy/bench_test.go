package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// BenchmarkStream is the time of one streamed token at full speed, with and
// without the proxy: 2000 tokens a call.
func BenchmarkStream(b *testing.B) {
	const tokens = 2000
	for _, through := range []bool{false, true} {
		for _, streams := range []int{1, 32} {
			b.Run(fmt.Sprintf("through=%v/streams=%d", through, streams), func(b *testing.B) {
				l := serve(b, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", events)
					for range tokens {
						say(w, chunk)
					}
					say(w, finish+done)
				}, nil)
				address := l.upstream
				if through {
					address = l.address
				}
				transport := &http.Transport{MaxIdleConnsPerHost: streams}
				defer transport.CloseIdleConnections()
				b.ReportAllocs()
				for b.Loop() {
					var clients sync.WaitGroup
					for range streams {
						clients.Go(func() {
							response, err := transport.RoundTrip(post(b.Context(), b, address, "/v1/chat/completions", strings.NewReader("{}")))
							if err != nil {
								b.Error(err)
								return
							}
							_, _ = io.Copy(io.Discard, response.Body)
							response.Body.Close()
							if through {
								l.emitted()
							}
						})
					}
					clients.Wait()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*streams*tokens), "ns/token")
			})
		}
	}
}

// BenchmarkToken is the time from a token's leaving the upstream to the
// client's having it and saying so; the difference is what the proxy adds.
func BenchmarkToken(b *testing.B) {
	for _, through := range []bool{false, true} {
		b.Run(fmt.Sprintf("through=%v", through), func(b *testing.B) {
			next := make(chan bool)
			l := serve(b, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", events)
				for <-next {
					say(w, chunk)
				}
				say(w, finish+done)
			}, nil)
			address := l.upstream
			if through {
				address = l.address
			}
			go func() { next <- true }()
			response := do(b, post(b.Context(), b, address, "/v1/chat/completions", strings.NewReader("{}")))
			piece := make([]byte, len(chunk))
			if _, err := io.ReadFull(response.Body, piece); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				next <- true
				if _, err := io.ReadFull(response.Body, piece); err != nil {
					b.Fatal(err)
				}
			}
			next <- false
			_, _ = io.Copy(io.Discard, response.Body)
		})
	}
}
