package ebpf

import (
	"time"

	"golang.org/x/sys/unix"
)

// SystemClock is the Clock of this machine.
func SystemClock() *Clock {
	return NewClock(readMonotonic, func() int64 { return time.Now().UnixNano() })
}

// readMonotonic reads CLOCK_MONOTONIC; on Linux it cannot fail.
func readMonotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}
