// Package join tells which legs run over RDMA, and which fell back to TCP
// without a word.
//
// In: readings of the RDMA devices (event.RDMA), and of each leg what TCP alone
// tells (legs.Facts). Out: the leg's transport, its reason, the device and port
// that hold its address, and the queue pairs this was concluded from.
//
// The signs are those of a decision table measured with ggml's RPC over
// soft-RoCE and a device of two ports on a 6.1 kernel. A leg that uses RDMA has
// a queue pair in RTS that its process made on the port whose GID is the leg's
// local address, and a TCP socket that stands still after some hundred bytes.
// One that fell back has payload on its socket and no such queue pair. The
// kernel does not tell which queue pair belongs to which connection, so a
// process with fewer queue pairs than legs on one port is judged by elimination:
// what moves on TCP has none. Where this does not decide, nothing is concluded.
//
// The Judge has no clock and reads nothing. What it wants to know of a process
// it asks Options.Process.
package join
