// Package llamalog finds requests in what llama.cpp's programs write.
//
// In: the bytes of a log as they grow, from a file (Follower) or a pipe
// (PassThrough), each piece with the time it came. Out: event.Request.
//
// It knows llama-server of both generations (blocks whose continuation lines
// carry no prefix, as in b7099, and lines that each say their slot and task,
// as in 0.7.0), llama-cli of three (llama_print_timings, llama_perf_context_print,
// "[ Prompt: ... ]"), and what stands around their lines: colour codes, time
// since start, a router's port, Docker, containerd, Compose, syslog, journald.
//
// Parser is pure and incremental: no clock, no I/O, bounded memory, and no
// text of a prompt or an answer outlives its line. vLLM and SGLang log
// averages of the whole engine and nothing about one request: their lines are
// recognised, counted and otherwise ignored.
package llamalog
