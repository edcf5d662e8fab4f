// Package netns finds the network namespaces whose sockets and queueing
// disciplines are watched, and talks netlink inside them.
//
// In: names below /run/netns, process ids, /proc. Out: Namespace values, each
// with an inode that identifies it (the kernel's net->ns.inum), short-lived
// handles for netlink sockets, and event.Problem values for what could not be
// entered and why.
//
// Nothing here keeps a namespace open: an open handle would keep a stopped
// container's interfaces alive. A handle lives for one conversation, and its
// inode is compared when it is opened, since names and process ids are reused.
package netns
