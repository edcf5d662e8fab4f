package event

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestParseRequest(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     Request
	}{
		{
			"rate only", `{"model":"m","decode_tokens_per_second":41.5}`,
			Request{Model: "m", DecodeRate: 41.5, Outcome: OutcomeOK},
		},
		{
			"times in nanoseconds", `{"type":"request","id":"a","source":"s","model":"m","start_ns":10,"first_token_ns":20,"end_ns":30,"prompt_tokens":5,"cached_tokens":2,"generated_tokens":9,"concurrency":1.5,"condition":"c"}`,
			Request{ID: "a", Source: "s", Model: "m", StartNS: 10, FirstTokenNS: 20, EndNS: 30, PromptTokens: 5, CachedTokens: 2, GeneratedTokens: 9, Outcome: OutcomeOK, Concurrency: 1.5, Condition: "c"},
		},
		{
			"times in RFC 3339", `{"model":"m","start":"1970-01-01T00:00:01Z","first_token":"1970-01-01T01:00:02.000000003+01:00","end":"1970-01-01T00:00:04Z","generated_tokens":9}`,
			Request{Model: "m", StartNS: 1e9, FirstTokenNS: 2e9 + 3, EndNS: 4e9, GeneratedTokens: 9, Outcome: OutcomeOK},
		},
		{
			"failed without a rate", `{"model":"m","outcome":"timeout","unknown":[1]}`,
			Request{Model: "m", Outcome: OutcomeTimeout},
		},
	} {
		got, err := ParseRequest([]byte(tt.in))
		if err != nil || *got != tt.want {
			t.Errorf("%s: %+v, %v\nwant %+v", tt.name, got, err, tt.want)
		}
	}
}

func TestParseRecordErrorsNameTheField(t *testing.T) {
	for _, tt := range []struct{ in, field string }{
		{`{"decode_tokens_per_second":1}`, "model"},
		{`{"model":"m"}`, "decode_tokens_per_second"},
		{`{"model":"m","generated_tokens":9,"end_ns":5}`, "decode_tokens_per_second"},
		{`{"model":7,"decode_tokens_per_second":1}`, "model"},
		{`{"model":"m","decode_tokens_per_second":"fast"}`, "decode_tokens_per_second"},
		{`{"model":"m","decode_tokens_per_second":-1}`, "decode_tokens_per_second"},
		{`{"model":"m","prefill_tokens_per_second":1e300}`, "prefill_tokens_per_second"},
		{`{"model":"m","decode_tokens_per_second":1,"generated_tokens":-1}`, "generated_tokens"},
		{`{"model":"m","decode_tokens_per_second":1e-320,"generated_tokens":100}`, "decode_tokens_per_second"},
		{`{"model":"m","decode_tokens_per_second":5e-324}`, "decode_tokens_per_second"},
		{`{"model":"m","decode_tokens_per_second":100,"generated_tokens":9223372036854775807}`, "decode_tokens_per_second"},
		{`{"model":"m","prefill_tokens_per_second":1e-9,"prompt_tokens":100}`, "prefill_tokens_per_second"},
		{`{"model":"m","decode_tokens_per_second":1,"outcome":"meh"}`, "outcome"},
		{`{"model":"m","decode_tokens_per_second":1,"concurrency":-1}`, "concurrency"},
		{`{"model":"m","decode_tokens_per_second":1,"end":"yesterday"}`, "end"},
		{`{"model":"m","decode_tokens_per_second":1,"end":"0001-01-01T00:00:00Z"}`, "end"},
		{`{"model":"m","decode_tokens_per_second":1,"start_ns":-5}`, "start_ns"},
		{`{"model":"m","decode_tokens_per_second":1,"start_ns":9,"end_ns":5}`, "end"},
		{`{"model":"m","decode_tokens_per_second":1,"start_ns":9,"first_token_ns":5}`, "first_token"},
		{`{"type":"weather","model":"m"}`, "type"},
		{`{"type":3}`, "type"},
		{`{"type":"exchange","time_ns":5}`, "leg"},
		{`{"type":"exchange","leg":"a"}`, "time_ns"},
		{`{"type":"exchange","leg":"a","time_ns":5,"duration_ns":-1}`, "duration_ns"},
		{`{"type":"exchange","leg":"a","time_ns":5,"stall_ns":9223372036854775807}`, "stall_ns"},
		{`{"type":"exchange","leg":"a","time_ns":5,"rtt_us":-2}`, "rtt_us"},
		{`{"type":"exchange","leg":"a","time_ns":5,"dsacks":-2}`, "dsacks"},
		{`{"type":"retransmit","leg":"a","time_ns":5,"kind":"slow"}`, "kind"},
		{`{"type":"retransmit","leg":"a","time_ns":5,"kind":"rto","side":"left"}`, "side"},
		{`{"type":"qdisc","time_ns":5}`, "device"},
		{`{"type":"qdisc","device":"eth0"}`, "time_ns"},
		{`{"type":"leg","leg":"a","time_ns":5,"transport":"pigeon"}`, "transport"},
		{`{"type":"leg","leg":"a","time_ns":5,"transport":"rdma","rdma_port":-1}`, "rdma_port"},
		{`{"type":"rdma","time_ns":5}`, "device"},
		{`{"type":"rdma","device":"d","port":1,"event":"e","meaning":"timeout"}`, "time_ns"},
		{`{"type":"rdma","time_ns":5,"from_ns":6,"device":"d","port":1,"event":"e","meaning":"timeout"}`, "from_ns"},
		{`{"type":"rdma","time_ns":5,"from_ns":4,"device":"d","port":256,"event":"e","meaning":"timeout"}`, "port"},
		{`{"type":"rdma","time_ns":5,"from_ns":4,"device":"d","port":1,"meaning":"timeout"}`, "event"},
		{`{"type":"rdma","time_ns":5,"from_ns":4,"device":"d","port":1,"event":"e","meaning":"luck"}`, "meaning"},
		{`{"type":"rdma","time_ns":5,"from_ns":4,"device":"d","port":1,"event":"e","meaning":"timeout","count":-1}`, "count"},
		{`{"type":"connection","time_ns":5}`, "leg"},
		{`{"type":"connection","leg":"a"}`, "time_ns"},
		{`{"type":"connection","leg":"a","time_ns":5,"start_ns":6}`, "start_ns"},
		{`{"type":"connection","leg":"a","time_ns":5,"role":"host"}`, "role"},
		{`{"model":"m","outcome":"error","status":1000}`, "status"},
	} {
		_, err := ParseRecord([]byte(tt.in))
		var field *FieldError
		if !errors.As(err, &field) || field.Field != tt.field {
			t.Errorf("%s: error %v, want one about %q", tt.in, err, tt.field)
		}
	}
	for _, in := range []string{"", "  ", "[1]", `"x"`, "{", `{"model":"m"`, "null"} {
		if rec, err := ParseRecord([]byte(in)); err == nil {
			t.Errorf("%q is read as %+v", in, rec)
		}
	}
	if _, err := ParseRequest([]byte(`{"type":"leg","leg":"a","time_ns":5,"transport":"tcp"}`)); err == nil {
		t.Error("a leg record is taken for a request")
	}
}

func TestRecordsSurviveWriting(t *testing.T) {
	for _, want := range []Record{
		&Request{ID: "a", Source: "s", Model: "m", StartNS: 1, FirstTokenNS: 2, EndNS: 3, PromptTokens: 4, CachedTokens: 1, GeneratedTokens: 9, PrefillRate: 5, DecodeRate: 6, Outcome: OutcomeError, Concurrency: 2, Condition: "c"},
		&Exchange{Leg: "a", SendNS: 7, Duration: 8, FirstByte: 9, Ack: 10, Stall: 11, RequestBytes: 12, ReplyBytes: 13, RTT: 14 * time.Microsecond, MinRTT: 3 * time.Microsecond, OutOfOrder: 1, Retransmits: 2, DSACKs: 3, Open: true, Flow: Flow{Socket: 99}},
		&Retransmit{Leg: "a", TimeNS: 5, Kind: RetransmitTLP, Side: SideWorker},
		&Qdisc{TimeNS: 5, Netns: "n", Device: "eth0", Kind: "htb", Handle: "1:", Packets: 1 << 40, Drops: 7},
		&Qdisc{TimeNS: 5, Device: "eth0", Kind: "fq_codel", Handle: "0:", Parent: "8001:1", Packets: 1},
		&LegChange{TimeNS: 5, Leg: "a", Transport: TransportFallback, Reason: "memlock", Netns: "n", Device: "eth0"},
		&LegChange{TimeNS: 5, Leg: "a", Transport: TransportRDMA, RDMADevice: "mlx5_0", RDMAPort: 2},
		&RDMAStep{FromNS: 4, TimeNS: 5, Device: "mlx5_0", Port: 2, Event: "local_ack_timeout_err", Meaning: RDMATimeout, Count: 7},
		&Connection{Leg: "a", StartNS: 4, EndNS: 5},
		&Connection{Leg: "a", StartNS: 4, EndNS: 5, Established: true, Flow: Flow{Role: RoleServer}},
		&Request{Model: "m", DecodeRate: 6, Outcome: OutcomeError, LowConfidence: true, Fingerprint: "b7099", Status: 503},
	} {
		line, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseRecord(line)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nread as %+v, %v\nwant    %+v", line, got, err, want)
		}
	}
}

func TestFreshPromptTokens(t *testing.T) {
	for _, tt := range []struct{ prompt, cached, want int }{{10, 4, 6}, {10, 10, 0}, {4, 10, 0}} {
		r := Request{PromptTokens: tt.prompt, CachedTokens: tt.cached}
		if got := r.FreshPromptTokens(); got != tt.want {
			t.Errorf("%d prompt, %d cached: %d fresh, want %d", tt.prompt, tt.cached, got, tt.want)
		}
	}
}

// FuzzParseRecord holds the law that what is read can be written and read
// again, and then stays as it is.
func FuzzParseRecord(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","decode_tokens_per_second":41.5,"end":"2026-11-30T01:02:03.000000004Z"}`,
		`{"type":"exchange","time_ns":5,"leg":"a","duration_ns":6,"rtt_us":31536000000000}`,
		`{"type":"retransmit","leg":"a","time_ns":5,"kind":"rto"}`,
		`{"type":"qdisc","time_ns":5,"device":"d","packets":18446744073709551615}`,
		`{"type":"leg","leg":"a","time_ns":5,"transport":"tcp"}`,
		`{"type":"rdma","from_ns":4,"time_ns":5,"device":"d","port":1,"event":"e","meaning":"timeout","count":18446744073709551615}`,
		`{"type":"connection","time_ns":5,"leg":"a","start_ns":4,"established":false,"role":"server"}`,
		`{"type":null}`, `{"model":"\ud800"}`, `{`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := ParseRecord(data)
		if err != nil {
			return
		}
		once, err := json.Marshal(rec)
		if err != nil {
			t.Fatalf("cannot write %+v: %v", rec, err)
		}
		again, err := ParseRecord(once)
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(once) {
			t.Fatalf("%s\nbecomes %s (%v)", once, twice, err)
		}
	})
}
