// Package proxy passes HTTP to one inference server unchanged and measures on
// the side.
//
// In: a client's requests, and what the upstream answers. Out: the same bytes,
// status, headers, cadence and errors in both directions, and one
// event.Request for each inference call (engine.Inference says which those
// are). Prompts and answers pass; none is kept.
package proxy
