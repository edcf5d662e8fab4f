package engine

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// fixtures are raw bytes as they stood on the wire.
const fixtures = "testdata/llamacpp-0.7.0-b11669"

// startNS is when each replayed call starts; a piece of its answer comes each
// tick after that.
const (
	startNS = int64(1_796_077_175_000_000_000)
	tick    = 10 * time.Millisecond
)

// exchange is one captured call: what was asked, and the answer in the pieces
// (HTTP chunks) that the engine sent.
type exchange struct {
	asked  []byte
	status int
	header http.Header
	pieces [][]byte
	cut    bool // the capture ends before the answer does
}

func load(t testing.TB, dir, name string) exchange {
	t.Helper()
	return asExchange(testkit.LoadCall(t, filepath.Join(dir, name)))
}

// names lists the fixtures of a folder.
func names(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.response.http"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures in %s: %v", dir, err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".response.http")
	}
	return files
}

// open begins an Observer on the exchange.
func (ex exchange) open() *Observer {
	o := NewObserver(Call{ID: "ours", Source: "main", StartNS: startNS})
	o.RequestBody(ex.asked)
	o.Response(ex.status, ex.header)
	return o
}

// pieceNS is when piece i comes.
func pieceNS(i int) int64 { return startNS + int64(i+1)*int64(tick) }

func (ex exchange) body() []byte { return bytes.Join(ex.pieces, nil) }
