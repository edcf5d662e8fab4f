package testkit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Answer is one entry of the conformance corpus: what an engine was asked, its
// answer's bytes as they stood on the wire, and what has to be made of them.
type Answer struct {
	Engine string `json:"engine"`
	Shape  string `json:"shape"`
	File   string `json:"file"` // without its ending, below the corpus' folder
	Source string `json:"source"`
	// WholeAt is from which byte of the body on the answer is whole; -1: never.
	WholeAt int `json:"whole_at"`
	// DecodeFrom and PrefillFrom say by which clock and count the rate is:
	// "engine", "usage" with our clock, "chunks" with our clock, or "": none.
	DecodeFrom  string     `json:"decode_from"`
	PrefillFrom string     `json:"prefill_from"`
	Want        AnswerWant `json:"want"`
	Call        `json:"-"`
}

// AnswerWant is the request record, its times in ms since the call began: the
// first piece (HTTP chunk) of the answer comes after 10 ms, each further one
// 10 ms later.
type AnswerWant struct {
	ID              string   `json:"id"`
	Model           string   `json:"model"`
	PromptTokens    int      `json:"prompt_tokens"`
	CachedTokens    int      `json:"cached_tokens"`
	GeneratedTokens int      `json:"generated_tokens"`
	PrefillRate     float64  `json:"prefill_tokens_per_second"`
	DecodeRate      float64  `json:"decode_tokens_per_second"`
	FirstTokenMS    *float64 `json:"first_token_ms"`
	EndMS           float64  `json:"end_ms"`
	Outcome         string   `json:"outcome"`
	Choices         int      `json:"choices"`
	Status          int      `json:"status"`
	LowConfidence   bool     `json:"low_confidence"`
	Fingerprint     string   `json:"fingerprint"`
}

// Call is one captured HTTP call.
type Call struct {
	Path   string
	Asked  []byte // the request's body
	Raw    []byte // the whole response
	Status int
	Header http.Header
	Pieces [][]byte // of the response's body: its HTTP chunks
	Cut    bool     // the capture ends before the answer does
}

// LoadAnswers reads the corpus in dir, in the order of its index.
func LoadAnswers(t testing.TB, dir string) []Answer {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(dir, "corpus.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Answer
	if err := json.Unmarshal(index, &all); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].Call = LoadCall(t, filepath.Join(dir, all[i].File))
	}
	return all
}

// LoadCall reads NAME.request.http and NAME.response.http.
func LoadCall(t testing.TB, name string) Call {
	t.Helper()
	asked, err := os.ReadFile(name + ".request.http")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(name + ".response.http")
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(asked)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer response.Body.Close()
	c := Call{Path: request.URL.Path, Raw: raw, Status: response.StatusCode, Header: response.Header}
	_, c.Asked, _ = bytes.Cut(asked, []byte("\r\n\r\n"))
	if slices.Contains(response.TransferEncoding, "chunked") {
		_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		c.chunks(body)
		return c
	}
	whole, err := io.ReadAll(response.Body)
	c.Cut = err != nil
	c.Pieces = [][]byte{whole}
	return c
}

func (c *Call) chunks(body []byte) {
	for {
		line, rest, ok := bytes.Cut(body, []byte("\r\n"))
		size, err := strconv.ParseInt(string(line), 16, 32)
		if !ok || err != nil || int(size)+2 > len(rest) {
			c.Cut = true
			return
		}
		if size == 0 {
			return
		}
		c.Pieces = append(c.Pieces, rest[:size])
		body = rest[size+2:]
	}
}
