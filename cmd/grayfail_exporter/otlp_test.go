package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	collect "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

var otlpLine = regexp.MustCompile(`"http":"([^"]+)","grpc":"([^"]+)","time":"[^"]*","message":"otlp receiver listens"`)

func (e *exporter) otlpAddrs() (web, rpc string) {
	e.t.Helper()
	all := otlpLine.FindAllStringSubmatch(e.log.String(), -1)
	if len(all) == 0 {
		e.t.Fatalf("no receiver:\n%s", e.log)
	}
	last := all[len(all)-1]
	return last[1], last[2]
}

// vLLMSpan is the export of collector/otlp's tests (two requests and a span of
// something else), ended now and with ids of its own.
func vLLMSpan(t *testing.T, id byte) *collect.ExportTraceServiceRequest {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "collector", "otlp", "testdata", "vllm-llm_request.pb"))
	if err != nil {
		t.Fatal(err)
	}
	export := new(collect.ExportTraceServiceRequest)
	if err := proto.Unmarshal(raw, export); err != nil {
		t.Fatal(err)
	}
	for _, r := range export.GetResourceSpans() {
		for _, s := range r.GetScopeSpans() {
			for _, span := range s.GetSpans() {
				took := span.GetEndTimeUnixNano() - span.GetStartTimeUnixNano()
				span.EndTimeUnixNano = uint64(time.Now().UnixNano())
				span.StartTimeUnixNano = span.EndTimeUnixNano - took
				span.SpanId[0] = id
			}
		}
	}
	return export
}

func postSpan(t *testing.T, address, contentType string, body []byte) {
	t.Helper()
	resp, err := http.Post("http://"+address+"/v1/traces", contentType, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", contentType, resp.Status)
	}
}

// TestTraces: a span of vLLM is a request, whichever way it comes, and the
// same span twice is one.
func TestTraces(t *testing.T) {
	config := writeFile(t, "requests: {otlp: {http: \"127.0.0.1:0\", grpc: \"127.0.0.1:0\"}}\n")
	e := startExporter(t, "--config.file", config)
	web, rpc := e.otlpAddrs()

	packed, err := proto.Marshal(vLLMSpan(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	postSpan(t, web, "application/x-protobuf", packed)
	postSpan(t, web, "application/x-protobuf", packed)
	json, err := os.ReadFile(filepath.Join("..", "..", "collector", "otlp", "testdata", "vllm-llm_request.json"))
	if err != nil {
		t.Fatal(err)
	}
	postSpan(t, web, "application/json", json)
	conn, err := grpc.NewClient(rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const export = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	if err := conn.Invoke(ctx, export, vLLMSpan(t, 2), new(collect.ExportTraceServiceResponse)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, text := e.get("/metrics")
		for _, want := range []string{
			`grayfail_requests_total{model="unknown",outcome="ok",source="otlp"} 6`,
			`grayfail_request_intake_total{result="accepted",source="otlp"} 6`,
			`grayfail_request_intake_total{result="duplicate",source="otlp"} 2`,
			`grayfail_collector_up{collector="requests"} 1`,
		} {
			if !strings.Contains(text, want+"\n") {
				return fmt.Errorf("no %s in\n%s", want, grep(text, "otlp"))
			}
		}
		if strings.Contains(text, "no_source_configured") {
			return fmt.Errorf("no source:\n%s", grep(text, "problem"))
		}
		return nil
	})
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d\n%s", code, e.log)
	}
}

// TestTracesReload: other addresses are listened on after a reload; one that
// is taken changes nothing.
func TestTracesReload(t *testing.T) {
	config := writeFile(t, "requests: {otlp: {http: \"127.0.0.1:0\", grpc: \"127.0.0.1:0\"}}\n")
	e := startExporter(t, "--config.file", config)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	rewrite := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(fmt.Sprintf("requests: {otlp: {http: %q}}\n", taken.Addr()))
	if code, body := e.post("/-/reload", ""); code == http.StatusOK || !strings.Contains(body, "otlp http") {
		t.Errorf("an address that is taken: %d %s", code, body)
	}
	web, _ := e.otlpAddrs()
	packed, err := proto.Marshal(vLLMSpan(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	postSpan(t, web, "application/x-protobuf", packed)
	rewrite("requests: {}\n")
	if code, body := e.post("/-/reload", ""); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	if c, err := net.Dial("tcp", web); err == nil {
		_ = c.Close()
		t.Error("still listening")
	}
	if _, text := e.get("/metrics"); !strings.Contains(text, `grayfail_request_intake_total{result="accepted",source="otlp"} 2`) {
		t.Errorf("the count did not stay:\n%s", grep(text, "intake"))
	}
}
