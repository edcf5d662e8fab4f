// Package httploss measures what packet loss on the way back from an inference
// server does to its answers, by their size, through the exporter's proxy.
//
// In: the exporter's binary. Out: Result, and the page docs/http-loss.md made
// of it. The server is ours and computes nothing; the network is real (veth,
// tbf, the lab's packet relay for delay and loss), and so is the exporter.
package httploss
