package rdma

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"grayfail/collector/rdma/nldev"
	"grayfail/event"
)

// Reasons of problems.
const (
	ReasonNotSupported = "not_supported"   // no RDMA core in this kernel, or it is not loaded
	ReasonNoPermission = "no_permission"   // the kernel refuses
	ReasonFailed       = "failed"          // it should work and does not
	ReasonUnreadable   = "unreadable_file" // a file of sysfs gave an error or nonsense
	ReasonNoSysfs      = "no_sysfs"        // netlink works, /sys/class/infiniband is not there
	ReasonQueuePairs   = "queue_pairs"     // those of a device could not be listed, or not all
	ReasonOff          = "queue_pairs_off" // they are switched off
	ReasonOverflow     = "overflow"        // more devices, queue pairs or counters than are kept
)

// Bounds of one reading. The largest hosts have 16 devices of up to 2 ports
// with some 60 counters each.
const (
	maxDevices    = 256
	maxPorts      = 1024
	maxQueuePairs = 100_000
	maxCounters   = 256 // of a port
)

const defaultEvery = 5 * time.Second

// Options of a Collector. The zero value is ready to use.
type Options struct {
	// Every is the pause between two lists of queue pairs and GID tables,
	// default 5 s. See the package comment for why it should not be short.
	Every time.Duration
	// NoQueuePairs leaves them out: no leg can be told to have fallen back.
	NoQueuePairs bool

	dial      func() (*nldev.Client, error) // tests
	sys, proc fs.FS                         // tests: /sys, /proc
}

// Collector reads the RDMA devices. It keeps one socket. Safe for concurrent
// use.
type Collector struct {
	opts Options

	mu     sync.Mutex
	client *nldev.Client
	slow   slow
}

// slow is what is read every Options.Every only.
type slow struct {
	readNS  int64
	devices []nldev.Handle // for which it was read
	pairs   []event.QueuePair
	missing []string
	gids    map[portKey]gidTable
	// problems of the last reading are told until the next.
	problems []event.Problem
}

type portKey struct {
	device uint32
	port   int
}

type gidTable struct {
	gids []event.GID
	read bool
}

// New returns a Collector; nothing is opened before Collect.
func New(opts Options) *Collector {
	opts.Every = cmp.Or(opts.Every, defaultEvery)
	if opts.dial == nil {
		opts.dial = func() (*nldev.Client, error) { return nldev.Dial(nil) }
	}
	if opts.sys == nil {
		opts.sys = os.DirFS("/sys")
	}
	if opts.proc == nil {
		opts.proc = os.DirFS("/proc")
	}
	return &Collector{opts: opts}
}

// SetQueuePairs changes Options.Every and Options.NoQueuePairs while it runs.
func (c *Collector) SetQueuePairs(every time.Duration, off bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opts.NoQueuePairs != off {
		c.slow = slow{} // what is told of them holds no more
	}
	c.opts.Every, c.opts.NoQueuePairs = cmp.Or(every, defaultEvery), off
}

// Close closes the socket.
func (c *Collector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.close()
}

func (c *Collector) close() error {
	if c.client == nil {
		return nil
	}
	err := c.client.Close()
	c.client = nil
	return err
}

// ErrNotLoaded says that the kernel's RDMA core is not there or not loaded.
// It is errors.ErrUnsupported.
var ErrNotLoaded = fmt.Errorf("no RDMA core in this kernel, or it is not loaded (/sys/class/infiniband): %w", errors.ErrUnsupported)

// Collect reads all devices, stamped nowNS. What one device could not give is
// a problem and loses nothing of the others; one that is removed meanwhile is
// left out. The error is not nil when nothing could be read at all:
// errors.ErrUnsupported where the kernel has no RDMA.
func (c *Collector) Collect(nowNS int64) (event.RDMA, []event.Problem, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := reading{Collector: c, RDMA: event.RDMA{TimeNS: nowNS}}
	err := r.collect()
	if c.client != nil && c.client.Broken() {
		_ = c.close() // nothing was written that could be lost
	}
	if err != nil {
		c.slow = slow{}
		return event.RDMA{TimeNS: nowNS}, []event.Problem{problem("", err)}, fmt.Errorf("rdma: %w", err)
	}
	return r.RDMA, r.problems, nil
}

// connect opens the socket where that has no side effect: the kernel would
// load its RDMA core for it. In a container without /sys it is opened all the
// same, since then nothing tells whether the core is loaded.
func (c *Collector) connect() error {
	if c.client != nil {
		return nil
	}
	if _, err := fs.Stat(c.opts.sys, "class"); err == nil {
		if _, err := fs.Stat(c.opts.sys, classDir); errors.Is(err, fs.ErrNotExist) {
			return ErrNotLoaded
		}
	}
	client, err := c.opts.dial()
	if err == nil {
		c.client = client
	}
	return err
}

const classDir = "class/infiniband"

// problem makes a Problem of what went wrong with a device, "" for all.
func problem(device string, err error) event.Problem {
	reason := ReasonFailed
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		reason = ReasonNotSupported
	case errors.Is(err, fs.ErrPermission):
		reason = ReasonNoPermission
	}
	detail := err.Error()
	if device != "" {
		detail = device + ": " + detail
	}
	return event.Problem{Reason: reason, Detail: detail}
}
