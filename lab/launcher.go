package lab

import (
	"os/exec"
	"runtime"
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

// start starts cmd inside ns.
func (l *launcher) start(ns Namespace, cmd *exec.Cmd) error {
	errc := make(chan error, 1)
	l.jobs <- func() {
		if err := ns.enter(); err != nil {
			errc <- err
			return
		}
		errc <- cmd.Start()
	}
	return <-errc
}

// stop ends the thread; children that still live get their death signal.
func (l *launcher) stop() {
	close(l.jobs)
	<-l.done
}
