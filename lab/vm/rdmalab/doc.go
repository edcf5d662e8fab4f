// Package rdmalab makes RDMA devices and processes that use them, inside the
// guest of package vm.
//
// In: a test that runs in the guest. Out: soft-RoCE devices over veth pairs, a
// device with two ports over two netdevs, and agents: processes with queue
// pairs and TCP connections that the test commands. All of it is gone when
// the test ends.
package rdmalab
