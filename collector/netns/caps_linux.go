package netns

import "golang.org/x/sys/unix"

// HasPtrace says whether the calling thread has CAP_SYS_PTRACE: with it, a
// process that still cannot be looked into is protected by something that no
// capability lifts (a security module, a user namespace).
func HasPtrace() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}
