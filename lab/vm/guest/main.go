// Command guest is the first and only program of a test VM: the kernel runs it
// as PID 1 from the initramfs.
//
// In: the modules packed beside it, the host's files and the job by 9p. Out:
// the results in the shared directory. Then it turns the machine off. If it
// dies the kernel panics, the VM ends, and the host finds no results.
package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"grayfail/lab/vm/internal/spec"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest is the init of a test VM, nothing to run elsewhere")
		os.Exit(2)
	}
	err := enter()
	if err == nil {
		err = work()
	}
	if err != nil {
		fmt.Println("guest:", err)
	}
	unix.Sync()
	fmt.Println("guest: power off:", unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
}

// work runs the job and writes what came of it.
func work() error {
	var job spec.Job
	var results spec.Results
	err := spec.Read(spec.Share, spec.JobFile, &job)
	if err == nil {
		err = prepare(&job)
	}
	if err != nil {
		results.Error = err.Error()
	}
	results.Kernel = release()
	for i := range job.Steps {
		if err != nil {
			break
		}
		results.Steps = append(results.Steps, run(&job.Steps[i]))
	}
	return spec.Write(spec.Share, spec.ResultsFile, &results)
}

func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown: " + err.Error()
	}
	return unix.ByteSliceToString(u.Release[:])
}
