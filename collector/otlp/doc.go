// Package otlp takes OpenTelemetry traces and finds inference requests in them.
//
// In: OTLP trace exports over HTTP (POST /v1/traces, protobuf or JSON, gzip)
// and gRPC. Out: one event.Request for each span of one inference call, as
// vLLM and SGLang write them or as the GenAI semantic conventions, old and
// new, name their attributes; every other span is counted and forgotten.
//
// Sizes, rates and connections are bounded. Attributes that hold prompts or
// answers are never looked at.
package otlp
