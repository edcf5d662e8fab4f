// Package privilege gives up capabilities that a program has no more use for.
//
// In: the capabilities to keep. Out: every thread of the process without the
// others, and without a way to get them back (PR_SET_NO_NEW_PRIVS).
package privilege

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// Result is what a Drop came to; names are those of capabilities(7) in small
// letters, in the kernel's order.
type Result struct {
	Kept    []string
	Dropped []string
	// Bounded: the bounding set holds what was kept only. That needs
	// CAP_SETPCAP; without it no_new_privs alone keeps the rest away.
	Bounded bool
}

// Drop gives up all capabilities except those of keep that the process has,
// in every thread there is or will be. On an error some may be gone already.
func Drop(keep ...cap.Value) (Result, error) {
	had := cap.GetProc()
	var r Result
	if _, err := cap.Prctlw(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); err != nil {
		return r, fmt.Errorf("no_new_privs: %w", err)
	}
	next, err := subset(had, keep)
	if err != nil {
		return r, err
	}
	var others []cap.Value
	for v := range cap.MaxBits() {
		switch {
		case has(next, v):
			r.Kept = append(r.Kept, name(v))
			continue
		case has(had, v):
			r.Dropped = append(r.Dropped, name(v))
		}
		if bound, err := cap.GetBound(v); err == nil && bound {
			others = append(others, v)
		}
	}
	r.Bounded = len(others) == 0
	if setpcap, err := had.GetFlag(cap.Effective, cap.SETPCAP); err == nil && setpcap && !r.Bounded {
		if err := cap.DropBound(others...); err != nil {
			return r, fmt.Errorf("bounding set: %w", err)
		}
		r.Bounded = true
	}
	// Ambient capabilities are for programs that this one would execute.
	if err := cap.ResetAmbient(); err != nil {
		return r, fmt.Errorf("ambient set: %w", err)
	}
	if err := next.SetProc(); err != nil {
		return r, fmt.Errorf("capset: %w", err)
	}
	return r, nil
}

// Held says whether the process may use a capability now.
func Held(v cap.Value) bool {
	held, err := cap.GetProc().GetFlag(cap.Effective, v)
	return err == nil && held
}

// subset are the capabilities of keep that had holds, permitted and effective;
// inheritable ones are for other programs, and there are none.
func subset(had *cap.Set, keep []cap.Value) (*cap.Set, error) {
	next := cap.NewSet()
	for _, v := range keep {
		if !has(had, v) {
			continue
		}
		for _, flag := range []cap.Flag{cap.Permitted, cap.Effective} {
			if err := next.SetFlag(flag, true, v); err != nil {
				return nil, fmt.Errorf("%s: %w", name(v), err)
			}
		}
	}
	return next, nil
}

func has(s *cap.Set, v cap.Value) bool {
	held, err := s.GetFlag(cap.Permitted, v)
	return err == nil && held
}

func name(v cap.Value) string { return strings.TrimPrefix(v.String(), "cap_") }

// Try runs f, itself and not goroutines of it, as if only keep were left, and
// returns its error. Nothing is given up: it tells beforehand what a Drop
// would break.
func Try(f func() error, keep ...cap.Value) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		// Only what is effective counts for the kernel's decisions; what is
		// permitted stays, and with it the way back.
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var before [2]unix.CapUserData
		if err := unix.Capget(&header, &before[0]); err != nil {
			done <- os.NewSyscallError("capget", err)
			return
		}
		trial := before
		for i := range trial {
			trial[i].Effective = 0
		}
		for _, v := range keep {
			trial[v/32].Effective |= before[v/32].Permitted & (1 << (v % 32))
		}
		if err := unix.Capset(&header, &trial[0]); err != nil {
			done <- os.NewSyscallError("capset", err)
			return
		}
		err := f()
		back := unix.Capset(&header, &before[0])
		if back == nil {
			runtime.UnlockOSThread() // else the thread ends here, or is used no more
		}
		done <- errors.Join(err, os.NewSyscallError("capset", back))
	}()
	return <-done
}
