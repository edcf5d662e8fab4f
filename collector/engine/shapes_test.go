package engine

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grayfail/event"
)

// stream gives a hand-written answer, one piece each tick.
func stream(contentType string, pieces ...string) exchange {
	ex := exchange{status: 200, header: http.Header{"Content-Type": {contentType}}}
	for _, p := range pieces {
		ex.pieces = append(ex.pieces, []byte(p))
	}
	return ex
}

func (ex exchange) asking(body string) exchange {
	ex.asked = []byte(body)
	return ex
}

func (ex exchange) answering(status int) exchange {
	ex.status = status
	return ex
}

const (
	role   = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}` + "\n\n"
	empty  = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	chunk  = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":" a\"}b\\"},"finish_reason":null}]}` + "\n\n"
	finish = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usage4 = `data: {"id":"c1","model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":61,"total_tokens":161}}` + "\n\n"
	done   = "data: [DONE]\n\n"
	events = "text/event-stream"
)

// TestShapes holds the traps: each case is an answer that a careless reader
// gets wrong. A piece comes each 10 ms, the first at 10 ms.
func TestShapes(t *testing.T) {
	ok, failed := event.OutcomeOK, event.OutcomeError
	for name, test := range map[string]struct {
		ex     exchange
		ending Ending
		want   want
	}{
		"usage with our clock": {stream(events, role, chunk, chunk, chunk, finish, usage4, done), EndedClean,
			want{"c1", "m", 100, 0, 61, 0, 60 / 20e-3, 20, 50, ok, 1, false}},
		"no usage: chunks, marked": {stream(events, role, chunk, chunk, chunk, finish, done), EndedClean,
			want{"c1", "m", 0, 0, 3, 0, 2 / 20e-3, 20, 50, ok, 1, true}},
		"cached tokens told: prefill by our clock": {stream(events, role, chunk, chunk, finish,
			`data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":11,"prompt_tokens_details":{"cached_tokens":20}}}`+"\n\n", done), EndedClean,
			want{"c1", "m", 100, 20, 11, 80 / 20e-3, 10 / 10e-3, 20, 40, ok, 1, false}},
		"usage on each chunk": {stream(events, role,
			`data: {"model":"m","choices":[{"index":0,"delta":{"content":"abc"}}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`+"\n\n",
			`data: {"model":"m","choices":[{"index":0,"delta":{"content":"def"}}],"usage":{"prompt_tokens":9,"completion_tokens":6}}`+"\n\n",
			`data: {"model":"m","choices":[{"index":0,"delta":{"content":"gh"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":8}}`+"\n\n",
			done), EndedClean, want{"c1", "m", 9, 0, 8, 0, 5 / 20e-3, 20, 40, ok, 1, false}},
		"role with an empty string is no token": {stream(events, empty, chunk, chunk, finish, done), EndedClean,
			want{"c1", "m", 0, 0, 2, 0, 1 / 10e-3, 20, 40, ok, 1, true}},
		"reasoning and tool calls are tokens": {stream(events, role,
			`data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}`+"\n\n",
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}]}`+"\n\n",
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[]}}]}`+"\n\n",
			finish, done), EndedClean, want{"c1", "m", 0, 0, 2, 0, 1 / 10e-3, 20, 50, ok, 1, true}},
		"CRLF, no space, comments, other fields": {stream(events, ": ping\r\n\r\nevent: x\r\nid: 7\r\nretry\r\n"+
			strings.ReplaceAll(strings.ReplaceAll(chunk, "data: ", "data:"), "\n", "\r\n"), ":\r\n\r\n",
			strings.ReplaceAll(chunk, "\n", "\r\n"), strings.ReplaceAll(finish, "\n", "\r"), "data:[DONE]\r\r"), EndedClean,
			want{"c1", "m", 0, 0, 2, 0, 1 / 20e-3, 10, 40, ok, 1, true}},
		"one event over several data lines": {stream(events,
			"data: {\"model\":\"m\",\ndata: \"choices\":[{\"delta\":\ndata:{\"content\":\"x\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n", done), EndedClean,
			want{"ours", "m", 0, 0, 1, 0, 0, 10, 10, ok, 1, true}},
		"events not parted by blank lines": {stream(events, strings.ReplaceAll(role+chunk+finish+done, "\n\n", "\n")), EndedClean,
			want{"c1", "m", 0, 0, 1, 0, 0, 10, 10, ok, 1, true}},
		"no [DONE], but a last chunk": {stream(events, role, chunk, finish), EndedClean,
			want{"c1", "m", 0, 0, 1, 0, 0, 20, 30, ok, 1, true}},
		"no last chunk, but [DONE]": {stream(events, role, chunk, done), EndedClean,
			want{"c1", "m", 0, 0, 1, 0, 0, 20, 30, ok, 1, true}},
		"a comment that quotes statistics": {stream(events, role, chunk, `: x generation_stats {"generation_tps":3}`+"\n\n", chunk, finish), EndedClean,
			want{"c1", "m", 0, 0, 2, 0, 1 / 20e-3, 20, 50, ok, 1, true}},
		"unknown type, cut": {stream("text/html", "<html>"), EndedCut,
			want{"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, failed, 1, false}},
		"ended without a last chunk": {stream(events, role, chunk, chunk), EndedClean,
			want{"c1", "m", 0, 0, 2, 0, 1 / 10e-3, 20, 30, failed, 1, true}},
		"connection cut": {stream(events, role, chunk, chunk), EndedCut,
			want{"c1", "m", 0, 0, 2, 0, 1 / 10e-3, 20, 30, failed, 1, true}},
		"nothing at all": {stream(events), EndedClean,
			want{"ours", "unknown", 0, 0, 0, 0, 0, -1, 0, failed, 1, false}},
		"error in the stream": {stream(events, role, chunk, `data: {"error":{"code":500,"message":"no memory","type":"server_error"}}`+"\n\n"), EndedClean,
			want{"c1", "m", 0, 0, 1, 0, 0, 20, 30, failed, 1, true}},
		"error in the stream, then [DONE]": {stream(events, role, `data: {"error":"boom"}`+"\n\n", done), EndedClean,
			want{"c1", "m", 0, 0, 0, 0, 0, -1, 30, failed, 1, false}},
		"error as a field of its own (llama.cpp 2023)": {stream(events, role, chunk, `error: {"code":500}`+"\n\n"), EndedClean,
			want{"c1", "m", 0, 0, 1, 0, 0, 20, 30, failed, 1, true}},
		"error null is none": {stream(events, role, strings.Replace(finish, `{"id"`, `{"error":null,"id"`, 1), done), EndedClean,
			want{"c1", "m", 0, 0, 0, 0, 0, -1, 20, ok, 1, false}},
		"a choice that ends with error": {stream(events, role, chunk, strings.Replace(finish, "stop", "error", 1), done), EndedClean,
			want{"c1", "m", 0, 0, 1, 0, 0, 20, 40, failed, 1, true}},
		"client leaves": {stream(events, role, chunk, chunk), EndedClient,
			want{"c1", "m", 0, 0, 2, 0, 1 / 10e-3, 20, 30, event.OutcomeCanceled, 1, true}},
		"client leaves at [DONE]": {stream(events, role, chunk, finish, done), EndedClient,
			want{"c1", "m", 0, 0, 1, 0, 0, 20, 30, ok, 1, true}},
		"client leaves after an error": {stream(events, `data: {"error":{"code":500}}`+"\n\n"), EndedClient,
			want{"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, failed, 1, false}},
		"time limit": {stream(events, role, chunk, chunk), EndedTimeout,
			want{"c1", "m", 0, 0, 2, 0, 1 / 10e-3, 20, 30, event.OutcomeTimeout, 1, true}},
		"unknown events are not judged": {stream(events, "data: {\"hello\":1}\n\n"), EndedClean,
			want{"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, ok, 1, false}},
		"two choices, one ended": {stream(events, chunk, strings.ReplaceAll(chunk, `"index":0`, `"index":1`), finish).asking(`{"n":2}`), EndedCut,
			want{"c1", "m", 0, 0, 2, 0, 1 / 10e-3 / 2, 10, 30, failed, 2, true}},
		"timings of an old build: no cache_n": {stream("application/json",
			`{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"x"}}],"model":"m","usage":{"prompt_tokens":40,"completion_tokens":9},`+
				`"timings":{"prompt_n":10,"prompt_ms":20.0,"predicted_n":9,"predicted_ms":3.0,"predicted_per_second":1}}`), EndedClean,
			want{"ours", "m", 40, 30, 9, 500, 3000, 7, 10, ok, 1, false}},
		"plain with usage only: no rate": {stream("application/json; charset=utf-8",
			`{"id":"x","choices":[{"finish_reason":"stop","message":{"content":"x"}}],"model":"m","usage":{"prompt_tokens":40,"completion_tokens":9}}`), EndedClean,
			want{"x", "m", 40, 0, 9, 0, 0, -1, 10, ok, 1, false}},
		"plain cut without an error of the wire": {stream("application/json", `{"id":"x","choices":[{"message":{"content":"x"`), EndedClean,
			want{"x", "unknown", 0, 0, 0, 0, 0, -1, 10, failed, 1, false}},
		"HTTP 500": {stream("text/html", "<h1>oops</h1>").answering(500), EndedClean,
			want{"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, failed, 1, false}},
		"error with HTTP 200": {stream("application/json", `{"object":"error","error":{"message":"x"}}`), EndedClean,
			want{"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, failed, 1, false}},
		"model of the request": {stream("application/json", `{"choices":[{"message":{"content":"x"}}]}`).asking(`{"messages":[{"content":"model"}],"model":"mistral"}`), EndedClean,
			want{"ours", "mistral", 0, 0, 0, 0, 0, -1, 10, ok, 1, false}},
		"names that would break a label": {stream("application/json", `{"id":"a b\"c\u0000\n","choices":[],"model":"x\ny\u202e\ud800z"}`), EndedClean,
			want{"a_b_c__", "x_y__z", 0, 0, 0, 0, 0, -1, 10, ok, 1, false}},
		"no content type": {exchange{status: 200, pieces: [][]byte{[]byte("\n"), []byte(chunk), []byte(finish)}}, EndedClean,
			want{"c1", "m", 0, 0, 1, 0, 0, 20, 30, ok, 1, true}},
		"absurd figures": {stream("application/json",
			`{"choices":[{}],"usage":{"prompt_tokens":-5,"completion_tokens":1e999},"timings":{"prompt_n":1e300,"prompt_ms":-1,"predicted_n":12,"predicted_ms":"x","cache_n":null}}`), EndedClean,
			want{"ours", "unknown", 0, 0, 12, 0, 0, 10, 10, ok, 1, false}},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.ex.open()
			for i, piece := range test.ex.pieces {
				o.ResponseBody(piece, pieceNS(i))
			}
			got := o.Finish(test.ending, pieceNS(len(test.ex.pieces)-1))
			if diff := cmp.Diff(test.want.request(test.ex), got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if o.Choices() != test.want.choices {
				t.Errorf("choices %d, want %d", o.Choices(), test.want.choices)
			}
		})
	}
}

// TestBlocked: where the client held the stream up, our clock says nothing
// about the engine.
func TestBlocked(t *testing.T) {
	ex := stream(events, role, chunk, chunk, chunk, finish, usage4, done)
	o := ex.open()
	for i, piece := range ex.pieces {
		o.ResponseBody(piece, pieceNS(i))
	}
	o.Blocked(int64(tick))
	if got := o.Finish(EndedClean, pieceNS(7)); got.DecodeRate != 0 || got.GeneratedTokens != 61 {
		t.Errorf("rate %g of %d tokens, want none of 61", got.DecodeRate, got.GeneratedTokens)
	}
}

// TestAbandon: nothing is concluded from bytes that were not shown.
func TestAbandon(t *testing.T) {
	ex := stream(events, role, chunk)
	o := ex.open()
	o.ResponseBody(ex.pieces[0], pieceNS(0))
	o.Abandon()
	if got := o.Finish(EndedClean, pieceNS(7)); got.Outcome != event.OutcomeOK {
		t.Errorf("outcome %s, want ok", got.Outcome)
	}
}

func TestConfiguredModel(t *testing.T) {
	o := NewObserver(Call{Model: "mine"})
	o.RequestBody([]byte(`{"model":"asked"}`))
	o.Response(200, http.Header{"Content-Type": {"application/json"}})
	o.ResponseBody([]byte(`{"model":"answered","choices":[]}`), 1)
	if got := o.Finish(EndedClean, 2); got.Model != "mine" {
		t.Errorf("model %q, want the configured one", got.Model)
	}
}

func TestInference(t *testing.T) {
	for path, want := range map[string]bool{
		"/v1/chat/completions": true, "/chat/completions": true, "/v1/completions": true,
		"/completion": true, "/infill": true, "/v1/responses": true, "/v1/messages": true, "/api/generate": true, "/api/chat": true,
		"/generate": true, "/generate_stream": true, "/v1/images/generate": false, "/v1/threads/1/messages": false,
		"/v1/messages/count_tokens": false, "/v1/responses/resp_1/cancel": false, "/openai/deployments/x/chat/completions": true,
		"/v1/models": false, "/health": false, "/v1/embeddings": false, "/": false,
		"/completions/": false, "/xcompletion": false,
	} {
		if got := Inference("POST", path); got != want {
			t.Errorf("POST %s: %v, want %v", path, got, want)
		}
		if Inference("GET", path) {
			t.Errorf("GET %s asks for nothing", path)
		}
	}
}
