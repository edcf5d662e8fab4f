package qdisc

import (
	"errors"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
)

// maxVanished bounds the single look-ups of interfaces that a dump names and
// the list of links does not.
const maxVanished = 16

// linkNames tells the names of the interfaces of one reading. Each is asked for
// by itself; where that is refused (a filter of system calls), the list of all
// links is read instead.
type linkNames struct {
	conn    *netlink.Conn
	known   map[int]string // "" cannot be told
	listed  bool
	lookups int
	err     error // of the list
}

// of is the name of an interface, "" where it cannot be told. gone is true when
// the kernel knows none with that index.
func (n *linkNames) of(index int) (name string, gone bool) {
	if name, ok := n.known[index]; ok {
		return name, false
	}
	if !n.listed {
		name, err := netns.LinkName(n.conn, index)
		if err == nil {
			n.known[index] = name
			return name, false
		}
		if errors.Is(err, unix.ENODEV) {
			return "", true
		}
		n.list()
		if name, ok := n.known[index]; ok {
			return name, false
		}
	}
	if n.err != nil || n.lookups >= maxVanished {
		return "", false
	}
	n.lookups++
	if name, gone = lookup(n.conn, index); gone {
		return "", true
	}
	n.known[index] = name
	return name, false
}

func (n *linkNames) list() {
	n.listed = true
	names, err := netns.Links(n.conn)
	n.err = err
	for index, name := range names {
		n.known[index] = name
	}
}

// lookup asks for one interface. gone is true when the kernel knows none with
// that index; name is "" when it cannot be told.
func lookup(conn *netlink.Conn, index int) (name string, gone bool) {
	req, err := netns.LinkRequest(index)
	if err != nil {
		return "", false
	}
	msgs, err := conn.Execute(req)
	if err != nil {
		return "", errors.Is(err, unix.ENODEV)
	}
	names, err := netns.ParseLinks(msgs)
	if err != nil {
		return "", false
	}
	return names[index], false
}
