package otlp

import (
	"encoding/base64"
	"encoding/hex"

	collect "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// unmarshalJSON reads OTLP's JSON: protobuf's, but for ids in hexadecimal and
// unknown fields, which are ignored.
func unmarshalJSON(b []byte, m proto.Message) error {
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
		return err
	}
	export, ok := m.(*collect.ExportTraceServiceRequest)
	if !ok {
		return nil
	}
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				if span != nil {
					span.TraceId = idFromHex(span.TraceId, 16)
					span.SpanId = idFromHex(span.SpanId, 8)
				}
			}
		}
	}
	return nil
}

// idFromHex undoes what protojson did: it read hexadecimal digits as base64,
// which every 4 of them are too. An id that was base64 after all stays.
func idFromHex(id []byte, size int) []byte {
	if len(id)*4 != size*2*3 {
		return id
	}
	digits := base64.StdEncoding.EncodeToString(id)
	if decoded, err := hex.DecodeString(digits); err == nil {
		return decoded
	}
	return id
}
