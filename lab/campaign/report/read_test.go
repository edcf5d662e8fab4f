package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const goodLine = `{"version":1,"spec_hash":"sha256:aa","run":17,"block":4,"position":2,"condition":"loss-5","repeat":4,"stream":0,"started":"2026-12-01T08:00:00.123456789Z","ended":"2026-12-01T08:00:01Z","valid":true,"invalid_reason":"","injector":{"kind":"nftables_drop","acted":true,"counter_before":0,"counter_after":41,"unit":"packets"},"request":{"outcome":"ok","exit_code":0,"http_status":200,"latency_seconds":1.23,"ttft_seconds":0.2,"output_tokens":60,"decode_tokens_per_second":45.1,"prefill_tokens_per_second":812,"verdict":"slow","relative":0.43,"named_leg":"rpc-b","cause":"loss","excess_seconds":1.1},"qdisc":{"drop_fraction":0.05,"drops":41,"packets":812},"tcp":{"retransmits":5,"rto":1}}`

// Every key of the format survives reading and writing.
func TestReadAndWrite(t *testing.T) {
	got, err := Read(strings.NewReader(goodLine + "\n"))
	if err != nil || len(got.Runs) != 1 || got.Cut {
		t.Fatalf("%+v, %v", got, err)
	}
	again, err := json.Marshal(got.Runs[0])
	if err != nil || string(again) != goodLine {
		t.Errorf("%v\n%s\n%s", err, again, goodLine)
	}
}

// A fact that is absent is nil, not zero.
func TestAbsentFacts(t *testing.T) {
	got, err := Read(strings.NewReader(`{"version":1,"spec_hash":"s","condition":"c","started":"2026-12-01T08:00:00Z","valid":true,"request":{"outcome":"ok"},"tcp":{"retransmits":0}}`))
	if err != nil {
		t.Fatal(err)
	}
	r := got.Runs[0]
	if r.Injector != nil || r.Qdisc != nil || r.Request.Latency != nil || r.Request.Decode != nil || r.TCP.RTO != nil || *r.TCP.Retransmits != 0 {
		t.Errorf("%+v", r)
	}
	for _, m := range Measures {
		if v, ok := m.Of(&r); ok {
			t.Errorf("%s is %v", m, v)
		}
	}
	for _, e := range Evidences {
		if v, ok := e.Of(&r); ok != (e == Retransmits) || v != 0 {
			t.Errorf("%s is %v, %v", e, v, ok)
		}
	}
}

func TestBadLines(t *testing.T) {
	other := func(old, with string) string {
		line := strings.Replace(goodLine, old, with, 1)
		if line == goodLine {
			t.Fatalf("%q is not in the line", old)
		}
		return line + "\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"version", other(`"version":1`, `"version":2,"new":1`), "line 1: version 2: this program reads version 1"},
		{"no version", other(`"version":1,`, ``), "line 1: version 0"},
		{"second line", goodLine + "\n{\n", "line 2: unexpected end of JSON input"},
		{"cut in the middle", goodLine[:40] + "\n" + goodLine, "line 1: unexpected end of JSON input"},
		{"two objects", goodLine + goodLine, "line 1: invalid character '{' after top-level value"},
		{"unknown key", other(`"ttft_seconds"`, `"ttft"`), `line 1: json: unknown field "ttft"`},
		{"type", other(`"run":17`, `"run":"17"`), "line 1: json: cannot unmarshal string into Go struct field Run.run"},
		{"no hash", other(`"sha256:aa"`, `""`), "line 1: spec_hash: missing"},
		{"other hash", goodLine + "\n" + strings.NewReplacer(`"sha256:aa"`, `"sha256:bb"`, `"run":17`, `"run":18`).Replace(goodLine), "line 2: spec_hash: sha256:bb, but the runs before it are of sha256:aa"},
		{"no condition", other(`"loss-5"`, `""`), "line 1: condition: missing"},
		{"negative", other(`"run":17`, `"run":-1`), "line 1: run, block, position, repeat or stream: negative"},
		{"no start", other(`"started":"2026-12-01T08:00:00.123456789Z",`, ``), "line 1: started: missing"},
		{"backwards", other(`08:00:01Z`, `07:00:01Z`), "line 1: ended: before started"},
		{"reason", other(`"invalid_reason":""`, `"invalid_reason":"x"`), "line 1: invalid_reason: of a valid run"},
		{"no reason", other(`"valid":true`, `"valid":false`), "line 1: invalid_reason: missing of an invalid run"},
		{"did not act", other(`"acted":true`, `"acted":false`), "line 1: valid: although the injector did not act"},
		{"no injector kind", other(`"nftables_drop"`, `""`), "line 1: injector.kind: missing"},
		{"no request", `{"version":1,"spec_hash":"s","condition":"c","started":"2026-12-01T08:00:00Z","valid":true}`, "line 1: request: missing of a valid run"},
		{"outcome", other(`"outcome":"ok"`, `"outcome":"fine"`), `line 1: request.outcome: "fine", want one of [ok error timeout canceled]`},
		{"verdict", other(`"slow"`, `"fast"`), `line 1: request.verdict: "fast", want one of [failed ok slow unknown]`},
		{"cause", other(`"loss"`, `"gremlins"`), `line 1: request.cause: "gremlins"`},
		{"tokens", other(`"output_tokens":60`, `"output_tokens":-60`), "line 1: request.output_tokens: negative"},
		{"latency", other(`1.23`, `-1.23`), "line 1: request.latency_seconds: negative"},
		{"rate", other(`45.1`, `1e308`), "line 1: request.decode_tokens_per_second: 1e+308 is no rate or time"},
		{"drops", other(`0.05`, `1.05`), "line 1: qdisc.drop_fraction: 1.05 is not between 0 and 1"},
		{"twice", goodLine + "\n\n" + goodLine, "line 3: run 17 stream 0: is on line 1 already"},
		{"too long", `{"version":1,"x":"` + strings.Repeat("x", maxLine), "line 1: longer than 1048576 bytes"},
	} {
		_, err := Read(strings.NewReader(c.text))
		var line *LineError
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &line) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	broken := errors.New("disk")
	if _, err := Read(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

// Wherever the file ends, what is before the cut counts and the cut is told.
func TestCutLastLine(t *testing.T) {
	second := strings.Replace(goodLine, `"run":17`, `"run":18`, 1)
	for end := range len(second) + 1 {
		got, err := Read(strings.NewReader(goodLine + "\n" + second[:end]))
		whole := end == len(second)
		want := 1
		if whole {
			want = 2
		}
		if err != nil || len(got.Runs) != want || got.Cut != (end > 0 && !whole) {
			t.Fatalf("cut after %d bytes: %d runs, cut %v, %v", end, len(got.Runs), got.Cut, err)
		}
	}
}

// An invalid run may be done again; a valid one may not.
func TestRunAgain(t *testing.T) {
	bad := strings.NewReplacer(`"valid":true,"invalid_reason":""`, `"valid":false,"invalid_reason":"interrupted"`).Replace(goodLine)
	got, err := Read(strings.NewReader(bad + "\n" + bad + "\n" + goodLine + "\n"))
	if err != nil || len(got.Runs) != 3 {
		t.Errorf("%d runs, %v", len(got.Runs), err)
	}
	if _, err := Read(strings.NewReader(goodLine + "\n" + bad + "\n")); err == nil {
		t.Error("a run after its valid record was taken")
	}
}

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("testdata/small/runs.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(goodLine))
	f.Add([]byte(goodLine[:100]))
	f.Add([]byte("\n\n{}\n"))
	f.Add([]byte(strings.Replace(goodLine, "1.23", "1e999", 1)))
	f.Add([]byte(strings.Replace(goodLine, "45.1", "1e308", 1)))
	f.Add([]byte(strings.Replace(goodLine, "45.1", "1e-308", 1) + "\n" + strings.NewReplacer("loss-5", "none", "45.1", "1e-320", ":17", ":1").Replace(goodLine)))
	f.Fuzz(func(t *testing.T, data []byte) {
		runs, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		// What was read is written and read as the same.
		var again bytes.Buffer
		for i := range runs.Runs {
			if err := json.NewEncoder(&again).Encode(&runs.Runs[i]); err != nil {
				t.Fatal(err)
			}
		}
		second, err := Read(&again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(runs.Runs, second.Runs); diff != "" {
			t.Fatal(diff)
		}
		// Whatever can be read can be told.
		m := small()
		if len(runs.Runs) > 0 {
			m.SpecHash = runs.Runs[0].SpecHash
		}
		for _, m.Measure = range Measures {
			res, err := Analyse(m, runs)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := json.Marshal(res); err != nil {
				t.Fatal(err)
			}
			res.Summary()
		}
	})
}
