// Package rdma reads the RDMA devices of this host.
//
// In: NETLINK_RDMA (package nldev) for devices, ports, queue pairs and hardware
// counters; sysfs for what netlink does not tell: GID tables, link layer and
// rate. Out: event.RDMA, one reading of all of it, and what could not be read.
//
// Queue pairs and GID tables are read more rarely than the rest. A list of
// queue pairs asks the driver about each of them, and on kernels before mid
// 2026 a queue pair that is destroyed meanwhile can crash the host (a use after
// free in ib_query_qp): Options sets how often, or never.
//
// Nothing here needs a capability. Opening NETLINK_RDMA makes the kernel load
// its RDMA core (module alias net-pf-16-proto-20), so it is opened only where
// the core is loaded already.
package rdma
