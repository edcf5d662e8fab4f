// Package standin is a stand-in for an inference engine, for tests that need
// exact expected values. It is NOT an engine and says so in its name, its log
// and its model name.
//
// In: a time per token, traffic sizes, the addresses of its workers. Out: the
// traffic of llama.cpp's RPC backend (one long-lived connection a worker, one
// exchange a token, replies of many segments) and llama-server's HTTP answers
// with timings.
package standin

// Name is what it calls itself: the model of every answer, the head of its log.
const Name = "standin"
