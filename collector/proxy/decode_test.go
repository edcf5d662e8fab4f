package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"grayfail/event"
)

// coders for each coding; "deflate" is zlib, "raw deflate" what some send in
// its place.
var coders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"raw deflate": func(w io.Writer) io.WriteCloser {
		f, err := flate.NewWriter(w, flate.DefaultCompression)
		if err != nil {
			panic(err)
		}
		return f
	},
	"br": func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		return z
	},
}

func coded(coding, text string) []byte {
	var b bytes.Buffer
	w := coders[coding](&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// codedUpstream answers with a coded body, cut after length bytes.
func codedUpstream(coding string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", events)
		w.Header().Set("Content-Encoding", strings.TrimPrefix(coding, "raw "))
		for len(body) > 0 {
			n := min(50, len(body))
			_, _ = w.Write(body[:n])
			_ = http.NewResponseController(w).Flush()
			body = body[n:]
		}
	}
}

func TestCodings(t *testing.T) {
	text := role + strings.Repeat(chunk, 20) + finish + done
	for coding := range coders {
		t.Run(coding, func(t *testing.T) {
			body := coded(coding, text)
			l := serve(t, codedUpstream(coding, body), nil)
			response := do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
			if got, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes, %v: not those of the upstream", len(got), err)
			}
			r := l.emitted()
			if r.Outcome != event.OutcomeOK || r.GeneratedTokens != 60 || r.DecodeRate != 25 || r.FirstTokenNS == 0 {
				t.Errorf("record %+v", r)
			}
			if s := l.proxy.Status(); s.Lost != 0 {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// TestCodingsUnreadable: what cannot be decoded passes, is counted and not
// judged.
func TestCodingsUnreadable(t *testing.T) {
	broken := coded("gzip", role+done)
	broken[len(broken)-20] ^= 0xff
	for name, test := range map[string]struct {
		coding string
		body   []byte
	}{
		"unknown":  {"compress", []byte("anything")},
		"two":      {"gzip, br", coded("gzip", role)},
		"not gzip": {"gzip", []byte("plain text all along")},
		"damaged":  {"gzip", broken},
		"bad zstd": {"zstd", []byte("plain text all along")},
	} {
		t.Run(name, func(t *testing.T) {
			l := serve(t, codedUpstream(test.coding, test.body), nil)
			response := do(t, post(within(t), t, l.address, "/completion", strings.NewReader("{}")))
			if got, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(got, test.body) {
				t.Errorf("%q, %v", got, err)
			}
			if r := l.emitted(); r.Outcome != event.OutcomeOK {
				t.Errorf("record %+v", r)
			}
			if s := l.proxy.Status(); s.Lost != 1 || s.Availability != event.Up {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// TestCodedCut: an answer that ends early in its coding is an error.
func TestCodedCut(t *testing.T) {
	body := coded("gzip", role+strings.Repeat(chunk, 20))
	l := serve(t, codedUpstream("gzip", body[:len(body)-10]), nil)
	_, _ = io.ReadAll(do(t, post(within(t), t, l.address, "/completion", strings.NewReader("{}"))).Body)
	if r := l.emitted(); r.Outcome != event.OutcomeError {
		t.Errorf("record %+v", r)
	}
}

// TestDecoderNeverWaits: with nobody decoding, adding neither blocks nor
// holds more than its bounds.
func TestDecoderNeverWaits(t *testing.T) {
	d := &decoder{queue: make(chan piece, maxPieces)}
	for range 4 * maxQueued / pieceSize {
		d.add(make([]byte, pieceSize), 1)
	}
	if held := len(d.queue) * pieceSize; !d.lost || held > maxQueued {
		t.Errorf("lost %v, %d bytes held", d.lost, held)
	}
	d = &decoder{queue: make(chan piece, maxPieces)}
	for range 2 * maxPieces {
		d.add([]byte("x"), 1)
	}
	if !d.lost || len(d.queue) != maxPieces {
		t.Errorf("lost %v, %d pieces held", d.lost, len(d.queue))
	}
}

// FuzzDecoded: no bytes crash a decoder or make it endless.
func FuzzDecoded(f *testing.F) {
	for coding := range coders {
		f.Add(strings.TrimPrefix(coding, "raw "), coded(coding, role+chunk+done))
	}
	f.Add("x-gzip", []byte{0x1f, 0x8b})
	f.Add("compress", []byte{})
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		plain, err := decoded(coding, bytes.NewReader(body))
		if err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, plain, 4<<20)
		if closer, ok := plain.(io.Closer); ok {
			_ = closer.Close()
		}
	})
}
