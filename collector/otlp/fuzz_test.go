package otlp

import (
	"testing"

	collect "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// FuzzExport: no export, in either encoding, crashes the receiver or makes a
// request that cannot be.
func FuzzExport(f *testing.F) {
	for _, ext := range []string{".json", ".pb"} {
		for _, name := range fixtures(f, ext) {
			f.Add(fixture(f, name), ext == ".json")
		}
	}
	f.Add([]byte(`{"resourceSpans":[null,{"scopeSpans":[null,{"spans":[null,{"attributes":[null,{"key":"gen_ai.usage.output_tokens"}]}]}]}]}`), true)
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"","spanId":"zz","startTimeUnixNano":1,"endTimeUnixNano":"18446744073709551615","attributes":[{"key":"gen_ai.latency.x","value":{"doubleValue":"NaN"}}]}]}]}]}`), true)
	f.Fuzz(func(t *testing.T, body []byte, json bool) {
		read := proto.Unmarshal
		if json {
			read = unmarshalJSON
		}
		var export collect.ExportTraceServiceRequest
		if read(body, &export) != nil {
			return
		}
		r, found := newReceiver(Config{})
		answer, err := r.take(&export)
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range *found {
			checkRequest(t, req)
		}
		if partial := answer.GetPartialSuccess(); uint64(partial.GetRejectedSpans()) != r.Stats().Rejected || len(partial.GetErrorMessage()) > maxMessage {
			t.Errorf("%v, %+v", partial, r.Stats())
		}
		if _, err := proto.Marshal(answer); err != nil { // its text is UTF-8
			t.Fatal(err)
		}
	})
}
