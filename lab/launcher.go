package lab

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// launcher starts children from one thread that lives as long as it does.
//
// PR_SET_PDEATHSIG is delivered when the starting THREAD ends, not the process
// (prctl(2)), and a child is born in the network namespace of that thread: both
// want a thread of our own.
type launcher struct {
	jobs chan func()
	done chan struct{}
}

func newLauncher() *launcher {
	l := &launcher{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		// Never unlocked: the thread has been in other namespaces and ends
		// with this goroutine.
		runtime.LockOSThread()
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

// start starts cmd inside ns; with realtime it is scheduled before everything
// that is not.
func (l *launcher) start(ns Namespace, cmd *exec.Cmd, realtime bool) error {
	errc := make(chan error, 1)
	l.jobs <- func() {
		if err := ns.enter(); err != nil {
			errc <- err
			return
		}
		if realtime {
			setRealtime() // the child inherits it
		}
		errc <- cmd.Start()
		if realtime {
			_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
		}
	}
	return <-errc
}

// setRealtime lets the calling, locked thread run before every ordinary one
// (sched_setattr(2) on a thread). Where that is refused it runs like any other.
func setRealtime() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0)
}

// stop ends the thread; children that still live get their death signal.
func (l *launcher) stop() {
	close(l.jobs)
	<-l.done
}
