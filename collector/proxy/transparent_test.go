package proxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const fixtures = "../engine/testdata/llamacpp-0.7.0-b11669"

// seen is what one end of a passage got.
type seen struct {
	Line    string
	Host    string
	Header  http.Header
	Body    string
	Length  int64
	Coding  []string
	Trailer http.Header
	Err     string
}

func seeResponse(r *http.Response) seen {
	body, err := io.ReadAll(r.Body)
	s := seen{Line: fmt.Sprint(r.Proto, r.StatusCode), Header: r.Header, Body: string(body), Length: r.ContentLength, Coding: r.TransferEncoding, Trailer: r.Trailer}
	if err != nil {
		s.Err = err.Error()
	}
	return s
}

func seeRequest(r *http.Request) seen {
	body, err := io.ReadAll(r.Body)
	s := seen{
		Line: r.Method + " " + r.RequestURI + " " + r.Proto, Host: r.Host, Header: r.Header, Body: string(body),
		Length: r.ContentLength, Coding: r.TransferEncoding, Trailer: r.Trailer,
	}
	if err != nil {
		s.Err = err.Error()
	}
	return s
}

func plain(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// TestTransparent sends the same request to an upstream and to a proxy in
// front of it: both ends must see the same.
func TestTransparent(t *testing.T) {
	const chat = "/v1/chat/completions"
	long := strings.Repeat("network ", 1<<17)
	for name, test := range map[string]struct {
		method, path, host string
		header             http.Header
		body               io.Reader
		trailer            http.Header
		handler            http.HandlerFunc
	}{
		"json":             {"POST", chat, "", http.Header{"Authorization": {"Bearer x"}, "X-Two": {"1", "2"}}, strings.NewReader(`{"model":"m"}`), nil, plain(200, http.Header{"Content-Type": {"application/json"}, "X-Many": {"a", "b"}}, `{"choices":[]}`)},
		"get":              {"GET", "/v1/models?x=1&y=%20;z", "", nil, nil, nil, plain(200, nil, "ok")},
		"head":             {"HEAD", "/health", "", nil, nil, nil, plain(200, http.Header{"Content-Length": {"12"}}, "")},
		"options":          {"OPTIONS", chat, "", http.Header{"Origin": {"http://a"}}, nil, nil, plain(204, http.Header{"Access-Control-Allow-Origin": {""}}, "")},
		"odd path":         {"GET", "/a//b/%2F..%2fc/./d;e?q=%zz&r=a+b", "", nil, nil, nil, plain(200, nil, "")},
		"own host":         {"POST", chat, "model.example", nil, strings.NewReader("{}"), nil, plain(200, nil, "{}")},
		"forwarded":        {"GET", "/", "", http.Header{"X-Forwarded-For": {"1.2.3.4"}, "Forwarded": {"for=1.2.3.4"}, "X-Forwarded-Proto": {"https"}}, nil, nil, plain(200, nil, "")},
		"no user agent":    {"GET", "/", "", http.Header{"User-Agent": {""}}, nil, nil, plain(200, nil, "")},
		"accepts gzip":     {"POST", chat, "", http.Header{"Accept-Encoding": {"gzip, br"}}, strings.NewReader("{}"), nil, plain(200, http.Header{"Content-Encoding": {"gzip"}, "Content-Type": {"application/json"}}, zipped(`{"choices":[]}`))},
		"no type, no date": {"POST", chat, "", nil, strings.NewReader("{}"), nil, plain(200, http.Header{"Content-Type": nil, "Date": nil}, "<html>")},
		"error":            {"POST", chat, "", nil, strings.NewReader("{}"), nil, plain(503, http.Header{"Retry-After": {"3"}}, `{"error":{}}`)},
		"redirect":         {"POST", chat, "", nil, strings.NewReader("{}"), nil, plain(307, http.Header{"Location": {"http://elsewhere/x"}}, "")},
		"not modified":     {"GET", "/", "", http.Header{"If-None-Match": {`"x"`}}, nil, nil, plain(304, http.Header{"Etag": {`"x"`}}, "")},
		"huge both ways":   {"POST", chat, "", nil, strings.NewReader(long), nil, plain(200, http.Header{"Content-Type": {"application/json"}}, long)},
		"chunked request":  {"POST", chat, "", nil, io.MultiReader(strings.NewReader(`{"model":`), strings.NewReader(`"m"}`)), http.Header{"X-Sum": {"7"}}, plain(200, nil, "{}")},
		"short and chunked": {"POST", chat, "", nil, strings.NewReader("{}"), nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "x")
		}},
		"trailers": {"POST", chat, "", http.Header{"Te": {"trailers"}}, strings.NewReader("{}"), nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Late")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Late", "1")
			w.Header().Set(http.TrailerPrefix+"X-Unannounced", "2")
		}},
		"cookies": {"POST", "/other", "", http.Header{"Cookie": {"a=b; c=d"}}, strings.NewReader("x"), nil, plain(200, http.Header{"Set-Cookie": {"a=1", "b=2"}}, "")},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []seen
			l := serve(t, func(w http.ResponseWriter, r *http.Request) {
				s := seeRequest(r)
				mu.Lock()
				asked = append(asked, s)
				mu.Unlock()
				test.handler(w, r)
			}, nil)
			var got []seen
			body, _ := readAll(test.body)
			for _, address := range []string{l.upstream, l.address} {
				r, err := http.NewRequestWithContext(within(t), test.method, "http://"+address, nil)
				if err != nil {
					t.Fatal(err)
				}
				// Opaque: the path goes out as it is written here.
				r.URL.Opaque = test.path
				if test.body != nil {
					r.Body = io.NopCloser(bytes.NewReader(body))
					r.ContentLength = int64(len(body))
				}
				if test.trailer != nil {
					r.ContentLength, r.Trailer = -1, test.trailer
				}
				r.Host = test.host
				for name, values := range test.header {
					r.Header[name] = values
				}
				got = append(got, seeResponse(do(t, r)))
			}
			for i := range 2 {
				delete(got[i].Header, "Date") // the second may have turned
			}
			if diff := cmp.Diff(got[0], got[1]); diff != "" {
				t.Errorf("the client sees (-direct +through):\n%s", diff)
			}
			if diff := cmp.Diff(asked[0], asked[1]); diff != "" {
				t.Errorf("the upstream sees (-direct +through):\n%s", diff)
			}
		})
	}
}

func readAll(r io.Reader) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	return io.ReadAll(r)
}

// TestDate: a date is neither added nor changed.
func TestDate(t *testing.T) {
	for _, date := range [][]string{nil, {"Thu, 01 Jan 1970 00:00:00 GMT"}} {
		l := serve(t, plain(200, http.Header{"Date": date}, "x"), nil)
		got := do(t, post(within(t), t, l.address, "/completion", nil)).Header["Date"]
		if !cmp.Equal(got, date) {
			t.Errorf("Date %q, want %q", got, date)
		}
	}
}

// TestRawAnswers passes llama.cpp's own bytes, and some that only old or
// hand-made servers send.
func TestRawAnswers(t *testing.T) {
	answers := map[string]string{
		"http/1.0, ended by close": "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"choices\":[]}",
		"http/1.1, ended by close": "HTTP/1.1 200 Fine\r\nContent-Type: text/event-stream\r\n\r\ndata: [DONE]\n\n",
		"cut":                      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
		"early hints":              "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
	}
	files, err := filepath.Glob(filepath.Join(fixtures, "*.response.http"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d fixtures: %v", len(files), err)
	}
	for _, file := range files {
		bytes, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		answers[filepath.Base(file)] = string(bytes)
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			upstream := raw(t, func(conn net.Conn, _ *http.Request) { _, _ = io.WriteString(conn, answer) })
			l := front(t, upstream, nil)
			direct := seeResponse(do(t, post(within(t), t, upstream, "/completion", nil)))
			through := seeResponse(do(t, post(within(t), t, l.address, "/completion", nil)))
			if strings.Contains(name, "by close") {
				// Framing belongs to each connection: an end without length
				// is a chunked end on the way to an HTTP/1.1 client.
				direct.Line, direct.Coding = through.Line, through.Coding
			}
			if diff := cmp.Diff(direct, through); diff != "" {
				t.Errorf("the client sees (-direct +through):\n%s", diff)
			}
			l.emitted()
		})
	}
}
