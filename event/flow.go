package event

import "net/netip"

// Role says which end of a connection this host is.
type Role uint8

const (
	// RoleClient: a process here opened the connection. Only these are clocked.
	RoleClient Role = iota
	// RoleServer: the peer opened it. Counted, never clocked.
	RoleServer
)

// String gives the label value: "client" or "server".
func (r Role) String() string {
	if r == RoleServer {
		return "server"
	}
	return "client"
}

// Flow identifies one TCP socket as the kernel saw it.
type Flow struct {
	// NetnsInode is the inode of the network namespace (stat of
	// /proc/PID/ns/net, the kernel's net->ns.inum).
	NetnsInode uint32
	// Role is RoleServer when the local port is a watched one.
	Role Role
	// Local and Peer are unmapped: ::ffff:a.b.c.d is written a.b.c.d.
	Local, Peer netip.AddrPort
	// Socket tells sockets with equal addresses apart; 0 means unknown.
	// It is the socket cookie where the source has it.
	Socket uint64
	// PID (thread group id) and Comm of the owner; 0 and "" when not known.
	PID  int
	Comm string
}
