// Package nldev speaks NETLINK_RDMA: the RDMA devices of this host, their
// ports, queue pairs, memory regions and hardware counters, as the kernel's
// RDMA core tells them.
//
// In: a netlink socket, or the messages of an answer. Out: Device, Port,
// QueuePair, MemoryRegion and Counter values, and errors that tell apart what
// is not supported (errors.ErrUnsupported), not permitted (fs.ErrPermission),
// not there any more (fs.ErrNotExist) and broken.
//
// The Parse functions are pure and take bytes from anywhere; Client does the
// talking. Nothing here needs a capability, and nothing changes anything.
//
// The interface is include/uapi/rdma/rdma_netlink.h, the answers are made in
// drivers/infiniband/core/nldev.c. Kernel versions are named where it differs.
package nldev
