package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
	"grayfail/internal/testkit"
)

// wire is an upstream that sends given bytes, in writes of a given size.
type wire struct {
	raw  []byte
	size int  // of each write
	hang bool // up after the last byte
}

// wired starts an upstream that answers each request with the next of wires.
func wired(t testing.TB, wires <-chan wire) string {
	t.Helper()
	return testkit.Accept(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			w := <-wires
			for at := 0; at < len(w.raw); at += w.size {
				if _, err := conn.Write(w.raw[at:min(at+w.size, len(w.raw))]); err != nil {
					return
				}
			}
			if w.hang {
				return
			}
		}
	})
}

// TestCorpus: every engine's answers come through as they are, in one write
// and in a write for each byte, and the record says what the corpus says;
// where the upstream breaks off, the record is ok only if the answer was whole.
func TestCorpus(t *testing.T) {
	wires := make(chan wire, 1)
	address := wired(t, wires)
	l := front(t, address, nil)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	ask := func(to string, a testkit.Answer, w wire) (*http.Response, []byte, error) {
		wires <- w
		response, err := transport.RoundTrip(post(within(t), t, to, a.Path, bytes.NewReader(a.Asked)))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response, body, err
	}
	for _, a := range testkit.LoadAnswers(t, "../engine/testdata") {
		for _, size := range []int{1, len(a.Raw)} {
			w := wire{raw: a.Raw, size: size, hang: a.Cut}
			direct, directBody, _ := ask(address, a, w)
			through, throughBody, err := ask(l.address, a, w)
			if a.Cut != (err != nil) {
				t.Errorf("%s %s: the client's read ended with %v", a.Engine, a.Shape, err)
			}
			for _, r := range []*http.Response{direct, through} {
				r.Header.Del("Connection") // of the hop
				r.Header.Del("Date")       // added where the engine sends none
			}
			if diff := cmp.Diff(direct.Header, through.Header); diff != "" || direct.StatusCode != through.StatusCode {
				t.Errorf("%s %s: status %d, was %d, header %s", a.Engine, a.Shape, through.StatusCode, direct.StatusCode, diff)
			}
			if !bytes.Equal(directBody, throughBody) {
				t.Errorf("%s %s: the body differs", a.Engine, a.Shape)
			}
			if got, want := counts(l.emitted()), wantedCounts(a.Want); got != want {
				t.Errorf("%s %s in writes of %d:\n%s, want\n%s", a.Engine, a.Shape, size, got, want)
			}
		}
	}
}

// counts are the parts of a record that do not depend on our clock.
func counts(r event.Request) string {
	if strings.HasPrefix(r.ID, "gf-") { // the answer has none
		r.ID = "ours"
	}
	return fmt.Sprintf("%s %s %s %d: prompt %d-%d generated %d guessed %v by %q", r.ID, r.Model, r.Outcome, r.Status,
		r.PromptTokens, r.CachedTokens, r.GeneratedTokens, r.LowConfidence, r.Fingerprint)
}

func wantedCounts(w testkit.AnswerWant) string {
	return counts(event.Request{
		ID: w.ID, Model: w.Model, Outcome: event.Outcome(w.Outcome), Status: w.Status, PromptTokens: w.PromptTokens,
		CachedTokens: w.CachedTokens, GeneratedTokens: w.GeneratedTokens, LowConfidence: w.LowConfidence, Fingerprint: w.Fingerprint,
	})
}

// TestCorpusCut: an upstream that hangs up anywhere, its header included.
func TestCorpusCut(t *testing.T) {
	wires := make(chan wire, 1)
	address := wired(t, wires)
	l := front(t, address, nil)
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	for _, a := range testkit.LoadAnswers(t, "../engine/testdata") {
		for i := range 16 {
			cut := 1 + i*(len(a.Raw)-1)/16
			wires <- wire{raw: a.Raw[:cut], size: cut, hang: true}
			if response, err := transport.RoundTrip(post(within(t), t, l.address, a.Path, bytes.NewReader(a.Asked))); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			want := event.OutcomeError
			if a.WholeAt > 0 && len(bodyIn(a, cut)) >= a.WholeAt {
				want = event.OutcomeOK
			}
			if got := l.emitted().Outcome; got != want {
				t.Errorf("%s %s, cut at %d of %d: %s, want %s", a.Engine, a.Shape, cut, len(a.Raw), got, want)
			}
		}
	}
}

// bodyIn is what of the body stands in the first bytes of an answer.
func bodyIn(a testkit.Answer, n int) []byte {
	head, rest, ok := bytes.Cut(a.Raw[:n], []byte("\r\n\r\n"))
	if !ok {
		return nil
	}
	if !bytes.Contains(bytes.ToLower(head), []byte("transfer-encoding: chunked")) {
		return rest
	}
	body := bytes.Join(a.Pieces, nil)
	got := 0
	for _, piece := range a.Pieces {
		line := len(fmt.Sprintf("%x\r\n", len(piece)))
		if len(rest) <= line {
			break
		}
		got += min(len(piece), len(rest)-line)
		rest = rest[min(len(rest), line+len(piece)+2):]
	}
	return body[:got]
}
