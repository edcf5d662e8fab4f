// Package engine reads what inference engines say about one request.
//
// In: a request's and its answer's bytes in whatever pieces they pass, each
// with the time it passed. Out: one event.Request. It is pure (no clock, no
// I/O), keeps no text of a prompt or an answer, and its memory does not grow
// with what it is fed: JSON is read as it flows by, field by field.
//
// Each shape of answer is one small file: a table of JSON paths and what they
// mean (openai.go, llamacpp.go, ...).
package engine
