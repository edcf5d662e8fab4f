package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"grayfail/event"
)

// Namespace identifies one network namespace.
type Namespace struct {
	// Name is what an operator calls it; "" is our own. See Set for how
	// namespaces without a name in /run/netns get one.
	Name string
	// Inode of the namespace file (nsfs): the kernel's net->ns.inum.
	Inode uint32
	// Path opens it; "" is our own.
	Path string
}

// Own says whether it is the namespace this process runs in.
func (n Namespace) Own() bool { return n.Path == "" }

// String names the namespace for people.
func (n Namespace) String() string {
	if n.Own() {
		return "own network namespace"
	}
	return fmt.Sprintf("network namespace %q", n.Name)
}

// Errors of finding and opening a namespace.
var (
	// ErrVanished: the namespace is gone, or another one has taken its name
	// or process id. It also matches fs.ErrNotExist.
	ErrVanished = fmt.Errorf("network namespace is gone: %w", fs.ErrNotExist)
	// ErrNotNamespace: the file is no network namespace, as an unclean
	// removal leaves it in /run/netns.
	ErrNotNamespace = errors.New("not a network namespace")
	// ErrInterrupted: a dump changed while it was read, every time it was tried.
	ErrInterrupted = errors.New("the kernel marked the dump as inconsistent (NLM_F_DUMP_INTR) each time")
	// ErrBadName: a name that cannot be a file in /run/netns.
	ErrBadName = errors.New("a namespace name is one file name in /run/netns: no slash, not empty")
)

// Error says which namespace could not be used.
type Error struct {
	Name string
	Err  error
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("own network namespace: %v", e.Err)
	}
	return fmt.Sprintf("network namespace %q: %v", e.Name, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Reasons of problems with namespaces.
const (
	ReasonNoPermission = "no_permission"
	ReasonNotFound     = "netns_not_found"
	ReasonOverflow     = "netns_overflow"
	ReasonInterrupted  = "dump_interrupted"
	ReasonFailed       = "failed"
)

// needs is appended where a capability would help.
const needs = "entering another network namespace needs CAP_SYS_ADMIN, and CAP_SYS_PTRACE to find it through a process"

// Problem says what failed in namespace name, for collector_problem_info.
// A vanished namespace is no problem: ok is false and the caller counts it.
func Problem(name string, err error) (p event.Problem, ok bool) {
	if nsErr := (*Error)(nil); !errors.As(err, &nsErr) {
		err = &Error{Name: name, Err: err}
	}
	switch {
	case errors.Is(err, ErrVanished):
		return event.Problem{}, false
	case errors.Is(err, fs.ErrPermission) && name != "":
		return event.Problem{Reason: ReasonNoPermission, Detail: err.Error() + ": " + needs}, true
	case errors.Is(err, fs.ErrPermission):
		return event.Problem{Reason: ReasonNoPermission, Detail: err.Error()}, true
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotNamespace), errors.Is(err, ErrBadName):
		return event.Problem{Reason: ReasonNotFound, Detail: err.Error()}, true
	case errors.Is(err, ErrInterrupted):
		return event.Problem{Reason: ReasonInterrupted, Detail: err.Error()}, true
	}
	return event.Problem{Reason: ReasonFailed, Detail: err.Error()}, true
}

// parseLink reads the target of a /proc/PID/ns/net link, "net:[4026531840]"
// (fs/nsfs.c, ns_get_name).
func parseLink(target string) (inode uint32, ok bool) {
	digits, found := strings.CutPrefix(target, "net:[")
	if !found {
		return 0, false
	}
	digits, found = strings.CutSuffix(digits, "]")
	if !found {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil && n != 0
}

// validName keeps a configured name inside /run/netns.
func validName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 255 && !strings.ContainsAny(name, "/\x00")
}
