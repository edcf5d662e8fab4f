package engine

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grayfail/event"
)

// sample is one answer of an engine we could not run: written as its source
// writes it, one piece each 10 ms.
type sample struct {
	ex   exchange
	want want
	// whole ends where the answer is whole: cut before it, it is an error.
	whole string
}

const lines = "application/x-ndjson"

func corpus() map[string]sample {
	ok := event.OutcomeOK
	events3 := func(pieces ...string) exchange { return stream(events, pieces...) }
	withHeader := func(ex exchange, pairs ...string) exchange {
		for i := 0; i < len(pairs); i += 2 {
			ex.header.Set(pairs[i], pairs[i+1])
		}
		return ex
	}
	return map[string]sample{
		// vLLM, protocol.py: usage null or left out on each chunk, metrics on the last.
		"vllm chat": {events3(
			`data: {"id":"chatcmpl-5b","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen2.5-0.5B","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n",
			`data: {"id":"chatcmpl-5b","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen2.5-0.5B","choices":[{"index":0,"delta":{"content":"Hel"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n",
			`data: {"id":"chatcmpl-5b","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen2.5-0.5B","choices":[{"index":0,"delta":{"content":"lo"},"logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":null}`+"\n\n",
			`data: {"id":"chatcmpl-5b","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen2.5-0.5B","choices":[],"usage":{"prompt_tokens":20,"total_tokens":45,"completion_tokens":25,"prompt_tokens_details":{"cached_tokens":16}},`+
				`"metrics":{"time_to_first_token_ms":41.5,"generation_time_ms":960.0,"queue_time_ms":0.4,"mean_itl_ms":40.0,"tokens_per_second":24.9}}`+"\n\n",
			done), want{"chatcmpl-5b", "Qwen/Qwen2.5-0.5B", 20, 16, 25, 4 / 20e-3, 25, 20, 30, ok, 1, false}, `"stop_reason":null}],"usage":null}`},
		"vllm plain": {stream("application/json",
			`{"id":"cmpl-1","object":"text_completion","model":"m","choices":[{"index":0,"text":"Hello","finish_reason":"length"}],"usage":{"prompt_tokens":20,"total_tokens":45,"completion_tokens":25,"prompt_tokens_details":null},"metrics":{"mean_itl_ms":20.0}}`),
			want{"cmpl-1", "m", 20, 0, 25, 0, 50, -1, 10, ok, 1, false}, `20.0}}`},
		// SGLang, tokenizer_manager.py: all of the text again in each chunk.
		"sglang": {events3(
			`data: {"text":" Paris","meta_info":{"id":"a1","finish_reason":null,"prompt_tokens":7,"completion_tokens":1,"cached_tokens":2}}`+"\n\n",
			`data: {"text":" Paris is","meta_info":{"id":"a1","finish_reason":null,"prompt_tokens":7,"completion_tokens":2,"cached_tokens":2}}`+"\n\n",
			`data: {"text":" Paris is a city","meta_info":{"id":"a1","finish_reason":{"type":"length","length":9},"prompt_tokens":7,"completion_tokens":9,"cached_tokens":2,"e2e_latency":0.4}}`+"\n\n",
			done), want{"a1", "unknown", 7, 2, 9, 5 / 10e-3, 8 / 20e-3, 10, 30, ok, 1, false}, `"e2e_latency":0.4}}`},
		"sglang plain": {stream("application/json",
			`{"text":" Paris","meta_info":{"id":"a1","finish_reason":{"type":"stop","matched":2},"prompt_tokens":7,"completion_tokens":9,"cached_tokens":2,"e2e_latency":0.4}}`),
			want{"a1", "unknown", 7, 2, 9, 0, 0, -1, 10, ok, 1, false}, `0.4}}`},
		// TGI, router/src/server.rs: no space after "data:", no [DONE].
		"tgi": {events3(
			`data:{"index":1,"token":{"id":1,"text":" Par","logprob":-0.1,"special":false},"generated_text":null,"details":null}`+"\n\n",
			`data:{"index":2,"token":{"id":2,"text":"is","logprob":-0.1,"special":false},"generated_text":null,"details":null}`+"\n\n",
			`data:{"index":3,"token":{"id":2,"text":"","logprob":-0.1,"special":true},"generated_text":" Paris","details":{"finish_reason":"eos_token","generated_tokens":3,"seed":null,"input_length":6}}`+"\n\n"),
			want{"ours", "unknown", 0, 0, 3, 0, 2 / 10e-3, 10, 30, ok, 1, false}, `"input_length":6}}`},
		"tgi plain": {withHeader(stream("application/json", `{"generated_text":" Paris","details":{"finish_reason":"length","generated_tokens":20}}`),
			"X-Prompt-Tokens", "6", "X-Generated-Tokens", "20", "X-Time-Per-Token", "12", "X-Inference-Time", "240").asking(`{"inputs":"x"}`),
			want{"ours", "unknown", 6, 0, 20, 0, 0, -1, 10, ok, 1, false}, `20}}`},
		// Ollama, api/types.go: nanoseconds.
		"ollama chat": {stream(lines,
			`{"model":"gemma3","created_at":"2026-11-30T22:00:00.1Z","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}`+"\n",
			`{"model":"gemma3","created_at":"2026-11-30T22:00:00.2Z","message":{"role":"assistant","content":"Hi"},"done":false}`+"\n",
			`{"model":"gemma3","created_at":"2026-11-30T22:00:00.3Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1363750750,"load_duration":63915300,"prompt_eval_count":26,"prompt_eval_duration":130079000,"eval_count":25,"eval_duration":1000000000}`+"\n"),
			want{"ours", "gemma3", 26, 0, 25, 0, 25, 10, 30, ok, 1, false}, `1000000000}`},
		"ollama plain, prompt cached": {stream("application/json; charset=utf-8",
			`{"model":"gemma3","created_at":"x","response":"Hi","done":true,"done_reason":"stop","context":[1,2,3],"total_duration":9,"eval_count":10,"eval_duration":5000000}`),
			want{"ours", "gemma3", 0, 0, 10, 0, 2000, 5, 10, ok, 1, false}, `5000000}`},
		// exo: the rates stand in a comment.
		"exo": {events3(role, chunk, chunk, finish,
			`: generation_stats {"prompt_tps":88.1,"generation_tps":17.5,"prompt_tokens":20,"generation_tokens":30,"peak_memory_usage":{"in_bytes":1}}`+"\n\n",
			strings.Replace(usage4, `"completion_tokens":61`, `"completion_tokens":30`, 1), done),
			want{"c1", "m", 100, 0, 30, 0, 17.5, 20, 40, ok, 1, false}, `"finish_reason":"stop"}]}`},
		"exo plain": {stream("application/json",
			`{"id":"x","model":"m","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":30},"generation_stats":{"prompt_tps":88.1,"generation_tps":17.5}}`),
			want{"x", "m", 20, 0, 30, 0, 17.5, -1, 10, ok, 1, false}, `17.5}}`},
	}
}

func TestCorpus(t *testing.T) {
	for name, s := range corpus() {
		t.Run(name, func(t *testing.T) {
			o := s.ex.open()
			for i, piece := range s.ex.pieces {
				o.ResponseBody(piece, pieceNS(i))
			}
			got := o.Finish(EndedClean, pieceNS(len(s.ex.pieces)-1))
			if diff := cmp.Diff(s.want.request(s.ex), got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if o.Choices() != s.want.choices {
				t.Errorf("choices %d, want %d", o.Choices(), s.want.choices)
			}
		})
	}
}

// TestCorpusPieces: splits change nothing, and a cut is never ok.
func TestCorpusPieces(t *testing.T) {
	for name, s := range corpus() {
		t.Run(name, func(t *testing.T) {
			body := s.ex.body()
			want := s.ex.observe(EndedClean, body)
			for i := range body {
				if got := s.ex.observe(EndedClean, body[:i], body[i:]); got != want {
					t.Fatalf("split at %d (-want +got):\n%s", i, cmp.Diff(want, got))
				}
			}
			whole := strings.LastIndex(string(body), s.whole) + len(s.whole)
			if whole < len(s.whole) {
				t.Fatalf("%q is not in the answer", s.whole)
			}
			for i := range len(body) + 1 {
				want := event.OutcomeError
				if i >= whole {
					want = event.OutcomeOK
				}
				for _, ending := range []Ending{EndedClean, EndedCut} {
					if got := s.ex.observe(ending, body[:i]).Outcome; got != want {
						t.Fatalf("cut at %d (whole at %d), ending %d: %s, want %s", i, whole, ending, got, want)
					}
				}
			}
		})
	}
}

// TestCorpusErrors: each shape's way to fail after HTTP 200.
func TestCorpusErrors(t *testing.T) {
	for name, ex := range map[string]exchange{
		"ollama":           stream(lines, `{"model":"m","message":{"content":"x"},"done":false}`+"\n", `{"error":"an error was encountered"}`+"\n"),
		"tgi":              stream(events, `data:{"error":"Request failed during generation","error_type":"generation"}`+"\n\n"),
		"sglang":           stream(events, `data: {"text":"x","meta_info":{"finish_reason":{"type":"abort","message":"x"},"prompt_tokens":1}}`+"\n\n", done),
		"responses":        stream(events, `data: {"type":"response.failed","response":{"error":{"code":"server_error"}}}`+"\n\n"),
		"messages":         stream(events, "event: error\n"+`data: {"type":"error","error":{"type":"overloaded_error"}}`+"\n\n"),
		"responses, plain": stream("application/json", `{"id":"r","object":"response","status":"failed","error":{"code":"x"}}`),
	} {
		if got := ex.observe(EndedClean, ex.pieces...).Outcome; got != event.OutcomeError {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNoHeaderTrap: absurd headers count nothing.
func TestNoHeaderTrap(t *testing.T) {
	for _, text := range []string{"", "-1", "1e9", "99999999999999", "2000000000", "x"} {
		if got := tgiHeader(http.Header{"X-Prompt-Tokens": {text}}).prompt; got.ok {
			t.Errorf("%q counts %d", text, got.n)
		}
	}
}
