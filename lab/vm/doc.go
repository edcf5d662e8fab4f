// Package vm runs Go tests as root on a real kernel that the machine itself
// does not have: Debian's stock kernel under QEMU, with RDMA devices, netem
// and modules of its own.
//
// In: a Job of packages whose tests carry the build tag "guest". Out: their
// results as subtests of the caller's test, with their output; whatever
// cannot run fails and says why.
//
// The guest sees the host's root file system read-only by 9p with a tmpfs
// overlay on top: every path of the host is valid there, nothing it does
// reaches the host, and the exit of the VM undoes it. No KVM is needed, so
// times mean nothing in there: no test may measure any.
//
// What is fetched and built lies in .lab/vm below the module's root and is
// reused: fetch.sh takes the kernel that Debian ships today, twoport is a
// module with an RDMA device of two ports. One VM runs at a time.
package vm
