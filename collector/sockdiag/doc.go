// Package sockdiag reads the TCP sockets of watched ports.
//
// In: SOCK_DIAG_BY_FAMILY dumps (inet_diag) with INET_DIAG_INFO for IPv4 and
// IPv6 in each namespace, filtered by port in the kernel; /proc/PID/fd for the
// owners. Out: event.TCPSocket values. Reading sockets needs no capability in
// the own namespace; owners of other users' sockets need CAP_SYS_PTRACE, which
// is reported as a problem where it is missing.
//
// parse.go and info.go turn bytes into values, filter.go makes the kernel's
// filter; collect_linux.go opens sockets and owners_linux.go files.
package sockdiag
