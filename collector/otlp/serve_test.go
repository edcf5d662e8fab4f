package otlp

import (
	"bytes"
	stdgzip "compress/gzip"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collect "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"grayfail/event"
)

func pack(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := stdgzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// post sends a body to the handler.
func post(r *Receiver, contentType, coding string, body []byte) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/v1/traces", bytes.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	if coding != "" {
		req.Header.Set("Content-Encoding", coding)
	}
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, req)
	return w
}

func TestHTTP(t *testing.T) {
	for _, c := range []struct {
		file, contentType, coding string
	}{
		{"impossible.pb", "application/x-protobuf", ""},
		{"impossible.pb", "application/x-protobuf", "gzip"},
		{"impossible.json", "application/json", ""},
		{"impossible.json", "application/json; charset=utf-8", "GZIP"},
		{"impossible.json", "application/json", "identity"},
	} {
		r, found := newReceiver(Config{})
		body := fixture(t, c.file)
		if strings.EqualFold(c.coding, "gzip") {
			body = pack(t, body)
		}
		w := post(r, c.contentType, c.coding, body)
		var answer collect.ExportTraceServiceResponse
		read := protojson.Unmarshal
		if strings.HasSuffix(c.file, ".pb") {
			read = proto.Unmarshal
		}
		if err := read(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%+v: %d, %v: %s", c, w.Code, err, w.Body)
		}
		if got := answer.GetPartialSuccess().GetRejectedSpans(); got != 6 || len(*found) != 1 {
			t.Errorf("%+v: %d rejected, %d found", c, got, len(*found))
		}
		if want, _, _ := strings.Cut(c.contentType, ";"); w.Header().Get("Content-Type") != want {
			t.Errorf("%+v: answered as %q", c, w.Header().Get("Content-Type"))
		}
	}
	// Taken whole: no partial success.
	r, _ := newReceiver(Config{})
	if w := post(r, "application/json", "", fixture(t, "errors.json")); w.Code != 200 || strings.TrimSpace(w.Body.String()) != "{}" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := post(r, "application/x-protobuf", "", nil); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("an empty export: %d %s", w.Code, w.Body)
	}
}

func TestHTTPRefuses(t *testing.T) {
	const pb, js = "application/x-protobuf", "application/json"
	big := fixture(t, "errors.json")
	for name, c := range map[string]struct {
		contentType, coding string
		body                []byte
		status              int
		code                codes.Code
	}{
		"another type":     {"text/plain", "", nil, http.StatusUnsupportedMediaType, codes.InvalidArgument},
		"no type":          {"", "", nil, http.StatusUnsupportedMediaType, codes.InvalidArgument},
		"another coding":   {pb, "zstd", nil, http.StatusUnsupportedMediaType, codes.InvalidArgument},
		"no protobuf":      {pb, "", []byte("\xff\xff"), http.StatusBadRequest, codes.InvalidArgument},
		"no JSON":          {js, "", []byte("{"), http.StatusBadRequest, codes.InvalidArgument},
		"no gzip":          {pb, "gzip", []byte("hello"), http.StatusBadRequest, codes.InvalidArgument},
		"gzip cut":         {js, "gzip", pack(t, big)[:200], http.StatusBadRequest, codes.InvalidArgument},
		"large":            {js, "", big, http.StatusRequestEntityTooLarge, codes.ResourceExhausted},
		"large, packed":    {js, "gzip", pack(t, big), http.StatusRequestEntityTooLarge, codes.ResourceExhausted},
		"a bomb":           {pb, "gzip", pack(t, make([]byte, 32<<20)), http.StatusRequestEntityTooLarge, codes.ResourceExhausted},
		"deep":             {js, "", []byte(strings.Repeat(`{"resourceSpans":[`, 500)), http.StatusBadRequest, codes.InvalidArgument},
		"large and random": {pb, "gzip", random(t, 10000), http.StatusBadRequest, codes.InvalidArgument},
	} {
		config := Config{MaxBody: 40 << 10}
		if strings.HasPrefix(name, "large") && !strings.Contains(name, "random") {
			config.MaxBody = 4 << 10
		}
		r, found := newReceiver(config)
		w := post(r, c.contentType, c.coding, c.body)
		var s rpc.Status
		read := protojson.Unmarshal
		if c.contentType == pb {
			read = proto.Unmarshal
		}
		if err := read(w.Body.Bytes(), &s); err != nil || w.Code != c.status || codes.Code(s.GetCode()) != c.code || s.GetMessage() == "" {
			t.Errorf("%s: %d %v (%v)", name, w.Code, &s, err)
		}
		if len(*found) > 0 {
			t.Errorf("%s: %d found", name, len(*found))
		}
	}
	r, _ := newReceiver(Config{})
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodOptions} {
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest(method, "/v1/traces", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/logs", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("logs: %d", w.Code)
	}
}

func random(t testing.TB, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHTTPBusy(t *testing.T) {
	r, _ := newReceiver(Config{PerSecond: 1, Burst: 7})
	post(r, "application/x-protobuf", "", fixture(t, "errors.pb"))
	w := post(r, "application/x-protobuf", "", fixture(t, "errors.pb"))
	var s rpc.Status
	if err := proto.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v %v", w.Code, &s, w.Header())
	}
	if s := r.Stats(); s.Limited != 1 {
		t.Errorf("%+v", s)
	}
}

// serve runs a receiver on free ports until the test ends.
func serve(t *testing.T, config Config) (r *Receiver, found func() []event.Request, stop func() error) {
	t.Helper()
	var mu sync.Mutex
	var all []event.Request
	config.HTTP, config.GRPC = "127.0.0.1:0", "127.0.0.1:0"
	r = New(config, Hooks{Now: now, Emit: func(req event.Request) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, req)
	}})
	if err := r.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() { cancel(); err = <-done })
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return r, func() []event.Request {
		mu.Lock()
		defer mu.Unlock()
		return all
	}, stop
}

func dial(t *testing.T, addr net.Addr) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

const exportMethod = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, found, stop := serve(t, Config{})
	web, grpcAddr := r.Addrs()
	client := &http.Client{Transport: &http.Transport{}}
	resp, err := client.Post(fmt.Sprintf("http://%s/v1/traces", web), "application/x-protobuf", bytes.NewReader(fixture(t, "vllm-llm_request.pb")))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK || len(found()) != 2 {
		t.Errorf("%d, %d found", resp.StatusCode, len(found()))
	}
	client.CloseIdleConnections()

	conn := dial(t, grpcAddr)
	defer conn.Close()
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		var answer collect.ExportTraceServiceResponse
		if err := conn.Invoke(t.Context(), exportMethod, unmarshal(t, "impossible.pb"), &answer, options...); err != nil {
			t.Fatal(err)
		}
		if answer.GetPartialSuccess().GetRejectedSpans() != 6 {
			t.Errorf("%v", &answer)
		}
	}
	if got := found(); len(got) != 3 || got[2].ID != "ddd19b7ec3c1b170" {
		t.Errorf("%+v", got)
	}
	if err := conn.Invoke(t.Context(), "/opentelemetry.proto.collector.logs.v1.LogsService/Export", unmarshal(t, "errors.pb"), &collect.ExportTraceServiceResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("logs: %v", err)
	}
	_ = conn.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestGRPCRefuses(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, found, stop := serve(t, Config{PerSecond: 1, Burst: 7, MaxBody: 16 << 10})
	_, addr := r.Addrs()
	conn := dial(t, addr)
	defer conn.Close()
	export := unmarshal(t, "errors.pb")
	invoke := func(m *collect.ExportTraceServiceRequest, options ...grpc.CallOption) error {
		return conn.Invoke(t.Context(), exportMethod, m, &collect.ExportTraceServiceResponse{}, options...)
	}
	if err := invoke(export); err != nil {
		t.Fatal(err)
	}
	err := invoke(export)
	if status.Code(err) != codes.Unavailable {
		t.Fatalf("%v", err)
	}
	var retry *errdetails.RetryInfo
	for _, d := range status.Convert(err).Details() {
		retry, _ = d.(*errdetails.RetryInfo)
	}
	if retry.GetRetryDelay().AsDuration() != retryAfter {
		t.Errorf("retry %v", retry)
	}
	bomb := unmarshal(t, "errors.pb")
	bomb.ResourceSpans[0].SchemaUrl = strings.Repeat("x", 1<<20)
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		if err := invoke(bomb, options...); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("large: %v", err)
		}
	}
	if len(found()) != 7 {
		t.Errorf("%d found", len(found()))
	}
	_ = conn.Close()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestListenFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for _, c := range []struct{ http, grpc, want string }{
		{taken, "", "otlp http: "}, {"127.0.0.1:0", taken, "otlp grpc: "}, {"nonsense", "", "otlp http: "},
	} {
		err := New(Config{HTTP: c.http, GRPC: c.grpc}, Hooks{}).Serve(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A sender that holds its connection open keeps nobody from stopping.
func TestStopEndsWhatHangs(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, _, stop := serve(t, Config{})
	web, grpcAddr := r.Addrs()
	for _, addr := range []net.Addr{web, grpcAddr} {
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if addr == web {
			fmt.Fprintf(conn, "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		}
	}
	done := make(chan error, 1)
	go func() { done <- stop() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still serving")
	}
}
