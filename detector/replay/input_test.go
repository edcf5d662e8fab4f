package replay_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/detector"
	"grayfail/detector/replay"
	"grayfail/event"
)

func zip(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const line = `{"id":"%d","model":"m","end_ns":%d,"generated_tokens":32,"decode_tokens_per_second":%g}`

func requests(n int, rate float64) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line+"\n", i, int64(1_800_000_000e9)+int64(i)*1e9, rate)
	}
	return b.String()
}

func TestBadLinesAreNamed(t *testing.T) {
	text := "\n" + // an empty line is no line
		`{"model":"m","end_ns":5,"decode_tokens_per_second":10,"generated_tokens":9}` + "\n" +
		"not json\n" +
		`{"type":"exchange","time_ns":7}` + "\n" +
		`{"type":"strange"}` + "\n" +
		`{"id":"` + strings.Repeat("x", 1<<20) + `"}` + "\n" +
		`{"model":"m","end_ns":6,"decode_tokens_per_second":"fast"}` + "\n" +
		`{"model":"m","end_ns":8,"decode_tokens_per_second":10,"generated_tokens":9}` // no end of line
	want := []string{
		"in:3: not a JSON object",
		`in:4: field "leg": is needed`,
		`in:5: field "type": unknown value "strange": allowed are request, exchange, retransmit, qdisc, leg, rdma, connection`,
		"in:6: line is longer than 1048576 bytes",
		`in:7: field "decode_tokens_per_second": cannot read JSON string as float64`,
	}
	for _, form := range []string{text, zip(t, text)} {
		res, err := replay.Run(detector.DefaultConfig(), input("in", form))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, bad := range res.Bad {
			got = append(got, bad.Error())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if res.BadLines != 5 || res.Records != 2 || len(res.Requests) != 4 {
			t.Errorf("%d bad lines, %d records, %d rows; want 5, 2, 4", res.BadLines, res.Records, len(res.Requests))
		}
	}
}

// A recording that was cut keeps what was read.
func TestTruncatedGzip(t *testing.T) {
	whole := zip(t, requests(2000, 100))
	res, err := replay.Run(detector.DefaultConfig(), input("cut", whole[:len(whole)*2/3]))
	if err != nil {
		t.Fatal(err)
	}
	if res.Records < 1000 || res.Records >= 2000 || res.BadLines != 1 || !errors.Is(res.Bad[0], io.ErrUnexpectedEOF) {
		t.Errorf("%d records, %d bad: %v", res.Records, res.BadLines, res.Bad)
	}
	corrupt := []byte(whole)
	copy(corrupt[len(corrupt)/2:], "garbage in the middle")
	res, err = replay.Run(detector.DefaultConfig(), input("corrupt", string(corrupt)))
	if err != nil || res.BadLines == 0 || res.Records == 0 {
		t.Errorf("%d records, %d bad, error %v", res.Records, res.BadLines, err)
	}
}

func TestNothingReadable(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "blank": "\n\n", "binary": "\x00\x01\x02\n\xff", "no records": "{}\n[]\n", "empty gzip": zip(t, ""),
	} {
		if _, err := replay.Run(detector.DefaultConfig(), input(name, text)); !errors.Is(err, replay.ErrNothing) {
			t.Errorf("%s: error %v, want ErrNothing", name, err)
		}
	}
	missing := errors.New("no such file")
	in := replay.Input{Name: "x", Open: func() (io.ReadCloser, error) { return nil, missing }}
	if _, err := replay.Run(detector.DefaultConfig(), in); !errors.Is(err, missing) {
		t.Errorf("error %v, want the one of opening", err)
	}
	if _, err := replay.Run(detector.DefaultConfig(), input("half a header", "\x1f\x8b\x08")); err == nil {
		t.Error("half a gzip header was read")
	}
}

// The JSON is a contract: these names and no null lists.
func TestJSONShape(t *testing.T) {
	res := run(t, strings.Split(requests(11, 100), "\n"))
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"file", "requests", "episodes", "table", "correlation", "bad_lines"} {
		if got[key] == nil {
			t.Errorf("%s is missing or null in %s", key, text)
		}
	}
	row := got["requests"].([]any)[0].(map[string]any)
	for _, key := range []string{"id", "source", "model", "condition", "phase", "outcome", "verdict", "excess_ms", "legs_ms", "local_ms", "cause", "detail", "leg"} {
		if v, known := row[key]; !known || v == nil {
			t.Errorf("row: %s is missing or null in %v", key, row)
		}
	}
	for _, key := range []string{"baseline", "r"} {
		if v, known := row[key]; !known || v != nil {
			t.Errorf("row: %s of a warming baseline is %v, want null", key, v)
		}
	}
	table := got["table"].([]any)[0].(map[string]any)
	for _, key := range []string{"condition", "requests", "median", "p10", "min", "max", "latency_median_s", "latency_p90_s", "slow", "unknown", "failed"} {
		if _, known := table[key]; !known {
			t.Errorf("table: %s is missing in %v", key, table)
		}
	}
}

func TestTable(t *testing.T) {
	var lines []string
	at := int64(1_800_000_000e9)
	for i := range 20 { // 1..20 tok/s, latencies 1..20 s
		at += 100e9
		lines = append(lines, fmt.Sprintf(`{"model":"m","condition":"c","id":"%d","start_ns":%d,"end_ns":%d,"generated_tokens":32,"decode_tokens_per_second":%d}`,
			i, at-int64(i+1)*1e9, at, i+1))
	}
	lines = append(lines, fmt.Sprintf(`{"model":"m","condition":"c","id":"e","end_ns":%d,"outcome":"error"}`, at+1e9),
		fmt.Sprintf(`{"model":"m","condition":"c","id":"x","end_ns":%d,"outcome":"canceled"}`, at+2e9),
		fmt.Sprintf(`{"model":"m","condition":"d","id":"y","end_ns":%d,"outcome":"timeout"}`, at+3e9))
	res := run(t, lines)
	f := func(x float64) *float64 { return &x }
	want := []replay.Condition{
		{Condition: "c", Requests: 21, Median: f(10.5), P10: f(2), Min: f(1), Max: f(20), LatencyMedian: f(10.5), LatencyP90: f(18), Slow: 1, Unknown: 10, Failed: 1},
		{Condition: "d", Requests: 1, Slow: 1, Failed: 1},
	}
	if diff := cmp.Diff(want, res.Table); diff != "" {
		t.Error(diff)
	}
}

// Several recordings of one time, one detector: the requests are in one, what
// the legs did in another.
func TestTogether(t *testing.T) {
	var requests, rest []string
	lines := load(t, "loss5_fromB")
	for _, l := range lines {
		if strings.Contains(l, `"type":"request"`) {
			requests = append(requests, l)
		} else {
			rest = append(rest, l)
		}
	}
	res, err := replay.Run(detector.DefaultConfig(), input("r", strings.Join(requests, "\n")), input("k", strings.Join(rest, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if res.File != "r,k" {
		t.Errorf("file %q", res.File)
	}
	if diff := cmp.Diff(run(t, lines).Requests, res.Requests); diff != "" {
		t.Error(diff)
	}
}

func TestOpenEpisodeEndsWithItsLastRequest(t *testing.T) {
	res := run(t, load(t, "delay50B"))
	last := res.Requests[len(res.Requests)-1]
	if len(res.Episodes) != 1 || res.Episodes[0].EndNS != last.EndNS && last.Phase == event.PhaseDecode {
		t.Errorf("episodes %+v, last request %+v", res.Episodes, last)
	}
}

// overRDMA is a recording of a leg whose payload no exchange shows: n requests
// in order, then one with retries of its port, at a rate.
func overRDMA(n int, rate float64) string {
	var b strings.Builder
	const start = int64(1_800_000_000e9)
	fmt.Fprintf(&b, `{"type":"leg","time_ns":%d,"leg":"rpc-b","transport":"rdma","rdma_device":"mlx5_0","rdma_port":2}`+"\n", start)
	fmt.Fprintf(&b, `{"type":"leg","time_ns":%d,"leg":"rpc-a","transport":"rdma","rdma_device":"mlx5_0","rdma_port":1}`+"\n", start)
	b.WriteString(requests(n, 100))
	end := start + int64(n+10)*1e9
	fmt.Fprintf(&b, `{"type":"rdma","from_ns":%d,"time_ns":%d,"device":"mlx5_0","port":2,"event":"local_ack_timeout_err","meaning":"timeout","count":7}`+"\n", end-1e9, end)
	fmt.Fprintf(&b, line+"\n", n, end, rate)
	return b.String()
}

// What was recorded of an RDMA port names its leg again.
func TestOverRDMA(t *testing.T) {
	res := run(t, strings.Split(overRDMA(12, 20), "\n"))
	row := res.Requests[len(res.Requests)-2] // decode, then prefill
	want := "rdma: 7 local_ack_timeout_err on port mlx5_0/2, whose exchanges are not seen: 1280 of 1280 ms on no leg"
	if row.Verdict != event.VerdictSlow || row.Cause != event.CauseLoss || row.Leg != "rpc-b" || row.Detail != want || res.BadLines != 0 {
		t.Errorf("%s %s %q: %s; %d bad lines", row.Verdict, row.Cause, row.Leg, row.Detail, res.BadLines)
	}
}

func TestTextIsSafe(t *testing.T) {
	res := run(t, []string{`{"model":"m","id":"\u001b[31mred","end_ns":1800000000000000000,"outcome":"error","condition":"a\nb"}`})
	var b bytes.Buffer
	if err := res.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b") || !strings.Contains(b.String(), `"a\nb"`) {
		t.Errorf("%q", b.String())
	}
}

func FuzzRun(f *testing.F) {
	f.Add([]byte(requests(12, 50)))
	f.Add([]byte(zip(f, requests(12, 50))))
	f.Add([]byte(`{"type":"exchange","time_ns":9000000000000000000,"leg":"a","duration_ns":31536000000000000}`))
	f.Add([]byte(`{"type":"exchange","time_ns":1,"leg":"a","duration_ns":5,"first_byte_ns":9,"stall_ns":99,"open":true,"socket":4}` + "\n" +
		`{"type":"retransmit","time_ns":3,"leg":"a","kind":"rto","side":"coordinator"}` + "\n" +
		`{"type":"qdisc","time_ns":3,"device":"d","kind":"tbf","handle":"1:","packets":18446744073709551615,"drops":1}` + "\n" +
		`{"type":"leg","time_ns":3,"leg":"a","transport":"fallback","reason":"memlock","device":"d"}` + "\n" +
		`{"model":"m","start_ns":1,"first_token_ns":2,"end_ns":9223372036854775807,"generated_tokens":100,"outcome":"timeout"}`))
	f.Add([]byte(overRDMA(12, 50)))
	for _, rec := range []string{"loss5_fromB", "v070_loss5_fromB"} {
		lines := load(f, rec)
		f.Add([]byte(strings.Join(lines[:60], "\n")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		res, err := replay.Run(detector.DefaultConfig(), input("fuzz", string(data)))
		if err != nil {
			return
		}
		for _, row := range res.Requests {
			if row.Cause.NamesPath() != (row.Leg != "") {
				t.Errorf("cause %q with leg %q", row.Cause, row.Leg)
			}
			if row.Verdict == event.VerdictOK && row.R == nil {
				t.Error("ok without a baseline")
			}
		}
		if _, err := json.Marshal(res); err != nil {
			t.Errorf("no JSON: %v", err) // a NaN or an infinity
		}
		if err := res.WriteText(io.Discard); err != nil {
			t.Error(err)
		}
	})
}
