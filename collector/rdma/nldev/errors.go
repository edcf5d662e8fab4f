package nldev

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Error is an operation that failed. errors.Is tells the kinds apart:
// errors.ErrUnsupported when the kernel or the driver has no such thing,
// fs.ErrPermission when it is not permitted, fs.ErrNotExist when the device or
// port is not there (any more), os.ErrDeadlineExceeded when the kernel stayed
// silent. Everything else is a failure. Unwrap gives the errno or what else
// went wrong.
type Error struct {
	Op Op
	// Device and Port that were asked for; 0 where the operation has none
	// (devices are counted from 0, but then Op says that there is one).
	Device, Port uint32
	Err          error

	// kind is what the errno alone does not tell, or nil.
	kind error
}

// Error names the operation and what it was about.
func (e *Error) Error() string {
	switch e.Op {
	case opConnecting, OpGet, OpSysGet:
		return fmt.Sprintf("nldev: %s: %v", e.Op, e.Err)
	case OpStatGet:
		return fmt.Sprintf("nldev: %s of device %d port %d: %v", e.Op, e.Device, e.Port, e.Err)
	}
	return fmt.Sprintf("nldev: %s of device %d: %v", e.Op, e.Device, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is adds the kinds that errnos of this interface stand for; what else
// syscall.Errno says of itself (fs.ErrPermission for EPERM) comes with Unwrap.
func (e *Error) Is(target error) bool {
	switch target {
	case errors.ErrUnsupported:
		// No RDMA core in this kernel: EPROTONOSUPPORT at socket(2), and
		// ECONNREFUSED at sendmsg(2) when it is a module that is not loaded
		// (net/netlink/af_netlink.c).
		return e.kind == target || errors.Is(e.Err, unix.EPROTONOSUPPORT) ||
			errors.Is(e.Err, unix.EAFNOSUPPORT) || errors.Is(e.Err, unix.ECONNREFUSED)
	case fs.ErrNotExist:
		return e.kind == target || errors.Is(e.Err, unix.ENODEV)
	}
	return false
}

// EntryError is an entry of an answer that could not be decoded. The others
// are returned beside it.
type EntryError struct {
	// Message is the position in the answer, from 0, Entry that in the
	// message's table.
	Message, Entry int
	Err            error
}

// Error names the position.
func (e *EntryError) Error() string {
	return fmt.Sprintf("message %d, entry %d: %v", e.Message, e.Entry, e.Err)
}

// Unwrap gives the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// entryErrors collects EntryErrors up to a bound: a broken answer must not
// grow an error without end.
type entryErrors struct {
	errs []error
	more int
}

const maxEntryErrors = 8

func (e *entryErrors) add(message, entry int, err error) {
	if err == nil {
		return
	}
	if len(e.errs) == maxEntryErrors {
		e.more++
		return
	}
	e.errs = append(e.errs, &EntryError{message, entry, err})
}

func (e *entryErrors) err() error {
	if e.more > 0 {
		return errors.Join(append(e.errs, fmt.Errorf("and %d more", e.more))...)
	}
	return errors.Join(e.errs...)
}

// join is errors.Join that leaves a single error as it is.
func join(errs []error) error {
	var one error
	for _, err := range errs {
		switch {
		case err == nil:
		case one == nil:
			one = err
		default:
			return errors.Join(errs...)
		}
	}
	return one
}
