package otlp

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collect "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"grayfail/event"
)

// now is when the exports of testdata come: their spans begin 100 s before.
func now() time.Time { return time.Unix(1796040100, 0) }

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fixtures(t testing.TB, ext string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "*"+ext))
	if err != nil || len(all) < 5 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, path := range all {
		names = append(names, filepath.Base(path))
	}
	return names
}

// show writes what matters of a request on one line, times in seconds.
func show(r event.Request) string {
	s := func(ns int64) string {
		if ns == 0 {
			return "-"
		}
		return fmt.Sprintf("%g", float64(ns-1796040000e9)/1e9)
	}
	return fmt.Sprintf("%s %s %s %s..%s..%s prompt %d-%d at %g generated %d at %g",
		r.ID, r.Model, r.Outcome, s(r.StartNS), s(r.FirstTokenNS), s(r.EndNS), r.PromptTokens, r.CachedTokens, r.PrefillRate, r.GeneratedTokens, r.DecodeRate)
}

// a receiver that keeps what it finds.
func newReceiver(config Config) (*Receiver, *[]event.Request) {
	found := &[]event.Request{}
	return New(config, Hooks{Now: now, Emit: func(r event.Request) { *found = append(*found, r) }}), found
}

// What each export holds.
func inFixtures() map[string][]string {
	return map[string][]string{
		"vllm-llm_request": {
			"cmpl-1 unknown ok 0..0.5..2.5 prompt 200-0 at 0 generated 41 at 20",
			"cmpl-2 unknown ok 3..3.249999872..3.249999872 prompt 200-0 at 0 generated 1 at 0",
		},
		"genai-2024-completion_tokens": {
			"chatcmpl-1 qwen2.5-0.5b ok 0..-..2 prompt 30-0 at 0 generated 20 at 0",
			"aaa19b7ec3c1b175 qwen ok 0..-..2 prompt 30-0 at 0 generated 20 at 0",
		},
		"genai-2026-input_tokens": {
			"resp_1__x_ qwen ok 0..1..3 prompt 100-64 at 40 generated 41 at 20",
			"bbb19b7ec3c1b175 qwen ok 0..1..3 prompt 100-0 at 0 generated 42 at 10",
		},
		"errors": {
			"ccc19b7ec3c1b171 qwen error 0..-..3 prompt 0-0 at 0 generated 0 at 0",
			"ccc19b7ec3c1b172 qwen timeout 0..-..3 prompt 0-0 at 0 generated 0 at 0",
			"ccc19b7ec3c1b173 qwen canceled 0..-..3 prompt 0-0 at 0 generated 0 at 0",
			"ccc19b7ec3c1b174 qwen timeout 0..-..3 prompt 0-0 at 0 generated 0 at 0",
			"ccc19b7ec3c1b175 qwen error 0..-..3 prompt 0-0 at 0 generated 0 at 0",
			"ccc19b7ec3c1b176 qwen canceled 0..-..3 prompt 0-0 at 0 generated 0 at 0",
			"ccc19b7ec3c1b177 qwen canceled 0..-..3 prompt 0-0 at 0 generated 0 at 0",
		},
		"impossible": {
			"ddd19b7ec3c1b170 qwen ok 0..1..3 prompt 0-0 at 0 generated 41 at 20",
		},
	}
}

func unmarshal(t testing.TB, name string) *collect.ExportTraceServiceRequest {
	t.Helper()
	var export collect.ExportTraceServiceRequest
	read := proto.Unmarshal
	if strings.HasSuffix(name, ".json") {
		read = unmarshalJSON
	}
	if err := read(fixture(t, name), &export); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return &export
}

func TestFixtures(t *testing.T) {
	for _, ext := range []string{".json", ".pb"} {
		for _, file := range fixtures(t, ext) {
			want, known := inFixtures()[strings.TrimSuffix(file, ext)]
			if !known {
				t.Errorf("%s: nobody says what it holds", file)
			}
			r, found := newReceiver(Config{})
			if _, err := r.take(unmarshal(t, file)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, req := range *found {
				got = append(got, show(req))
				checkRequest(t, req)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}

// checkRequest: what every request must keep, whatever a span says.
func checkRequest(t testing.TB, r event.Request) {
	t.Helper()
	if r.ID == "" || r.Model == "" || r.Source != "otlp" || r.Outcome == "" || r.StartNS <= 0 || r.EndNS < r.StartNS ||
		r.FirstTokenNS != 0 && (r.FirstTokenNS < r.StartNS || r.FirstTokenNS > r.EndNS) ||
		r.CachedTokens > r.PromptTokens || r.GeneratedTokens < 0 ||
		!(r.DecodeRate >= 0 && r.DecodeRate <= maxRate) || !(r.PrefillRate >= 0 && r.PrefillRate <= maxRate) || math.IsNaN(r.DecodeRate) {
		t.Errorf("%+v", r)
	}
}

func TestPartialSuccess(t *testing.T) {
	r, _ := newReceiver(Config{})
	answer, err := r.take(unmarshal(t, "impossible.json"))
	if err != nil {
		t.Fatal(err)
	}
	partial := answer.GetPartialSuccess()
	if partial.GetRejectedSpans() != 6 {
		t.Errorf("%d rejected", partial.GetRejectedSpans())
	}
	for _, want := range []string{
		`span ddd19b7ec3c1b171 "chat backwards": start_time_unix_nano and end_time_unix_nano are no span`,
		`"chat tomorrow": end_time_unix_nano is more than a minute ahead`,
		`"chat negative": gen_ai.usage.output_tokens cannot be read`,
	} {
		if !strings.Contains(partial.GetErrorMessage(), want) {
			t.Errorf("no %q in %q", want, partial.GetErrorMessage())
		}
	}
	if len(partial.GetErrorMessage()) > maxMessage || strings.Contains(partial.GetErrorMessage(), "many") {
		t.Errorf("%q", partial.GetErrorMessage())
	}
	if s := r.Stats(); s.Requests != 1 || s.Rejected != 6 || s.Unknown != 1 {
		t.Errorf("%+v", s)
	}

	r, _ = newReceiver(Config{})
	answer, err = r.take(unmarshal(t, "genai-2026-input_tokens.json"))
	if err != nil || answer.GetPartialSuccess() != nil {
		t.Errorf("%v, %v", answer, err)
	}
	if s := r.Stats(); s.Requests != 2 || s.Unknown != 4 || s.Rejected != 0 {
		t.Errorf("%+v", s)
	}
}

// A sender that did not hear the answer sends the same again.
func TestRepeated(t *testing.T) {
	r, found := newReceiver(Config{Remember: 3})
	for range 2 {
		if _, err := r.take(unmarshal(t, "vllm-llm_request.pb")); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.Stats(); s.Requests != 2 || s.Repeated != 2 || len(*found) != 2 {
		t.Errorf("%+v", s)
	}
	// What is remembered is bounded: seven others push them out.
	for _, name := range []string{"errors.pb", "vllm-llm_request.pb"} {
		if _, err := r.take(unmarshal(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.Stats(); s.Requests != 11 || len(r.memory.known) != 3 || len(r.memory.order) != 3 {
		t.Errorf("%+v, %d known", s, len(r.memory.known))
	}
}

func TestRateIsBounded(t *testing.T) {
	clock := now()
	r := New(Config{PerSecond: 10, Burst: 7}, Hooks{Now: func() time.Time { return clock }, Emit: func(event.Request) {}})
	take := func() error {
		_, err := r.take(unmarshal(t, "errors.pb")) // seven spans
		return err
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	if err := take(); !errors.Is(err, errBusy) {
		t.Fatalf("%v", err)
	}
	clock = clock.Add(time.Second)
	if err := take(); err != nil {
		t.Fatal(err)
	}
	if s := r.Stats(); s.Limited != 1 || s.Repeated != 7 {
		t.Errorf("%+v", s)
	}
}
