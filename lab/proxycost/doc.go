// Package proxycost says what the exporter's proxy adds to a streamed token,
// beside nginx in front of the same stream.
//
// In: the exporter's binary, and nginx. Out: Result, and the page
// docs/proxy-cost.md made of it. The engine and its clients are in this
// process: the engine writes the time into each chunk, the client reads the
// clock when it has the chunk.
package proxycost
