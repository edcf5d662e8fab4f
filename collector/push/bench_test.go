package push

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// BenchmarkHTTP is one record in a POST of its own over loopback, from four
// clients at once: the design asks for 10,000 a second.
func BenchmarkHTTP(b *testing.B) {
	h := New(Config{PerSecond: 1e12, Burst: 1 << 40}, Hooks{})
	server := httptest.NewServer(h)
	defer server.Close()
	var id atomic.Int64
	b.SetParallelism(2)
	b.RunParallel(func(pb *testing.PB) {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for pb.Next() {
			body := fmt.Sprintf(`{"id":"%d","model":"m","generated_tokens":20,"decode_tokens_per_second":25.5}`, id.Add(1))
			response, err := client.Post(server.URL, "application/json", strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	if got := h.Stats().Accepted; got != uint64(b.N) {
		b.Errorf("%d of %d accepted", got, b.N)
	}
}
