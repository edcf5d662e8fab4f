package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// answer is what a scripted engine sends for a model.
type answer struct {
	model, head string
	pieces      []string // of the body: each is sent when the client has the one before
	ending      ending
}

type ending int

const (
	whole ending = iota
	cut          // the engine's connection breaks
	left         // the client's does
)

const (
	headed = "Content-Type: text/event-stream\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nX-Engine: a\r\nX-Engine: b\r\n"
	stream = "HTTP/1.1 200 OK\r\n" + headed + "Transfer-Encoding: chunked\r\n\r\n"
	timed  = `{"model":"timed","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"timings":{"cache_n":10,"prompt_n":90,"prompt_ms":45,"predicted_n":60,"predicted_ms":2400}}`
	refuse = `{"error":{"code":500,"message":"no","type":"server_error"}}`
	// counted has 60 tokens in 20 chunks, by its usage.
	counted             = "counted"
	firstText, lastText = 2, 22 // of its pieces
)

var answers = []answer{
	{counted, stream, countedPieces(), whole},
	{"failing", stream, append(tokens("failing", 3), "data: "+refuse+"\r\n\r\n"), whole},
	{"cut", stream, tokens("cut", 3), cut},
	{"left", stream, tokens("left", 3), left},
	{"refused", sized("500 Internal Server Error", refuse), []string{refuse}, whole},
	{"timed", sized("200 OK", timed), []string{timed}, whole},
}

func sized(status, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: %d\r\n\r\n", status, len(body))
}

// delta is a chunk of a chat, its lines ended as HTTP ends them.
func delta(model, inside string) string {
	return fmt.Sprintf("data: {\"id\":\"chatcmpl-%s\",\"model\":%q,\"choices\":[{\"index\":0,\"delta\":{%s}}]}\r\n\r\n", model, model, inside)
}

func tokens(model string, n int) []string {
	return strings.SplitAfter(strings.Repeat(delta(model, `"content":"x"`), n-1)+delta(model, `"content":"x"`), "\r\n\r\n")[:n]
}

// countedPieces are a comment, a chunk with a role and no text, 20 chunks of
// which one comes in two pieces, and one with the usage alone.
func countedPieces() []string {
	text := tokens(counted, 20)
	halves := append([]string{text[10][:30], text[10][30:]}, text[11:]...)
	pieces := append([]string{": waiting\r\n\r\n", delta(counted, `"role":"assistant","content":null`)}, text[:10]...)
	return append(append(pieces, halves...),
		fmt.Sprintf("data: {\"model\":%q,\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":60}}\r\n\r\n", counted), "data: [DONE]\r\n\r\n")
}

// span is when the first and the last chunk with text were at one end.
type span struct{ first, last time.Time }

func (s *span) note(piece int) {
	switch piece {
	case firstText:
		s.first = time.Now()
	case lastText:
		s.last = time.Now()
	}
}

// actor is an engine that answers one request at a time, in step with its client.
type actor struct {
	address string
	asked   chan string   // each request as it came
	had     chan struct{} // the client has a piece
	ended   chan span     // the answer: when it was sent
}

func scripted(t *testing.T) *actor {
	t.Helper()
	e := &actor{asked: make(chan string, 1), had: make(chan struct{}), ended: make(chan span, 1)}
	e.address = testkit.Accept(t, func(conn net.Conn) { e.serve(t.Context(), conn) })
	return e
}

func (e *actor) serve(ctx context.Context, conn net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	dump, err := httputil.DumpRequest(r, true)
	if err != nil || !give(ctx, e.asked, string(dump)) {
		return
	}
	for _, a := range answers {
		if strings.Contains(string(dump), fmt.Sprintf("%q", a.model)) {
			give(ctx, e.ended, e.play(ctx, conn, a))
		}
	}
}

// tokenTime is what a chunk takes the engine: far longer than any write, or
// the proxy would rightly say that it measured its client.
const tokenTime = 25 * time.Millisecond

// play sends each piece in two writes.
func (e *actor) play(ctx context.Context, conn net.Conn, a answer) (sent span) {
	_, _ = io.WriteString(conn, a.head)
	for i, piece := range a.pieces {
		if a.model == counted {
			<-time.After(tokenTime)
		}
		sent.note(i)
		if a.head == stream {
			piece = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
		}
		_, _ = io.WriteString(conn, piece[:len(piece)/2])
		_, _ = io.WriteString(conn, piece[len(piece)/2:])
		if _, ok := take(ctx, e.had); !ok {
			return sent
		}
	}
	switch {
	case a.ending == left:
		_, _ = io.Copy(io.Discard, conn) // until the client is gone
	case a.ending == cut:
	case a.head == stream:
		_, _ = io.WriteString(conn, "0\r\n\r\n")
	}
	_ = conn.Close()
	return sent
}

// ask has an answer from an address. It returns all that both ends have seen,
// and when the chunks were at the engine's and at the client's end.
func (e *actor) ask(t *testing.T, address string, a answer) (seen string, sent, got span) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	response := e.open(ctx, t, address, a.model)
	defer response.Body.Close()
	asked, _ := take(ctx, e.asked)
	var all strings.Builder
	fmt.Fprintf(&all, "%s\n%s %s\n", asked, response.Proto, response.Status)
	_ = response.Header.Write(&all)
	for i, piece := range a.pieces {
		body := make([]byte, len(piece))
		n, err := io.ReadFull(response.Body, body)
		got.note(i)
		if all.Write(body[:n]); err != nil || !give(ctx, e.had, struct{}{}) {
			t.Fatalf("piece %d: %v, after:\n%s", i, err, &all)
		}
	}
	if a.ending == left {
		_ = response.Body.Close()
	} else {
		rest, err := io.ReadAll(response.Body)
		fmt.Fprintf(&all, "%s\nended: %v, %d bytes announced, %v", rest, err, response.ContentLength, response.TransferEncoding)
	}
	sent, ok := take(ctx, e.ended)
	if !ok {
		t.Fatal("the engine's end does not end")
	}
	return all.String(), sent, got
}

// open asks for an answer and returns with its header.
func (e *actor) open(ctx context.Context, t *testing.T, address, model string) *http.Response {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"stream":true}`, model)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: -1} // no header of the hop, as DisableKeepAlives would add
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func give[T any](ctx context.Context, c chan<- T, v T) bool {
	select {
	case c <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

func take[T any](ctx context.Context, c <-chan T) (v T, ok bool) {
	select {
	case v = <-c:
		return v, true
	case <-ctx.Done():
		return v, false
	}
}
