package main

import (
	"os"
	"syscall"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"grayfail/internal/privilege"
)

// rights gives up what the exporter needs no more once its programs are
// attached and its listeners open. The zero value keeps everything: that is
// for tests, whose process is not ours to change.
type rights struct {
	drop func(keep ...cap.Value) (privilege.Result, error)
	// gaveAdmin: CAP_SYS_ADMIN was there, and is not any more.
	gaveAdmin bool
}

// needed are the capabilities of use later on, as far as they are held.
func (s *server) needed() []cap.Value {
	keep := []cap.Value{
		cap.SYS_PTRACE,       // owners of other users' sockets, limits of their processes
		cap.DAC_READ_SEARCH,  // the same (/proc/PID/fd), and engine logs of other users
		cap.NET_BIND_SERVICE, // a reload may add a proxy on a port below 1024
	}
	if entersNamespaces(s.config()) {
		keep = append(keep, cap.SYS_ADMIN)
	}
	if ofAnother(s.flags.stateDir) {
		keep = append(keep, cap.DAC_OVERRIDE)
	}
	return keep
}

func entersNamespaces(c *config) bool { return len(c.Namespaces.Names) > 0 || c.Namespaces.Auto }

// ofAnother says whether a folder belongs to another user than ours, such as
// root running on the state of the service.
func ofAnother(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) != os.Geteuid()
}

// giveUp drops the rest. The BPF programs go on by the descriptors that are
// open: loading again, which nothing does, would need a restart.
func (s *server) giveUp() {
	if s.rights.drop == nil {
		return
	}
	keep := s.needed()
	if err := privilege.Try(s.probes.Check, keep...); err != nil {
		s.log.Warn().Err(err).Msg("CAP_BPF stays: this kernel (before Linux 5.19) wants it for every look at what the BPF programs have counted")
		keep = append(keep, cap.BPF, cap.PERFMON)
	}
	admin := privilege.Held(cap.SYS_ADMIN)
	result, err := s.rights.drop(keep...)
	s.rights.gaveAdmin = admin && !privilege.Held(cap.SYS_ADMIN)
	if err != nil {
		s.log.Error().Err(err).Strs("wanted_to_keep", result.Kept).Strs("wanted_to_drop", result.Dropped).
			Msg("capabilities could not be given up: the exporter goes on with more rights than it needs")
		return
	}
	s.log.Info().Strs("kept", result.Kept).Strs("dropped", result.Dropped).Bool("bounding_set_dropped", result.Bounded).
		Msg("capabilities that are needed no more are given up, no new ones can be had")
}
