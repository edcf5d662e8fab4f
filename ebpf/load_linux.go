package ebpf

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"

	"grayfail/event"
)

// Options says what to watch and how much memory it may take.
type Options struct {
	// Ports are TCP ports of the servers: as a peer's port they make a client
	// leg, as a local port a server leg.
	Ports []uint16
	// Namespaces are inodes of network namespaces. Sockets of all others are
	// left alone; without any, nothing is seen. At most MaxNamespaces.
	Namespaces []uint32
	// MaxSockets bounds the table of sockets; 0 means DefaultMaxSockets.
	MaxSockets uint32
	// RingBytes is the size of the event buffer, rounded up to a power of two
	// of whole pages; 0 means DefaultRingBytes. An exchange takes 168 bytes.
	RingBytes uint32
	// Clock maps the kernel's times; nil is the machine's own.
	Clock *Clock

	// sendHook forces one send hook, for tests of the older ones.
	sendHook string
}

// The bound of what can be watched, and the sizes taken for 0.
const (
	MaxNamespaces     = 1024
	DefaultMaxSockets = 4096
	DefaultRingBytes  = 1 << 20
)

func (o *Options) setDefaults() {
	if o.MaxSockets == 0 {
		o.MaxSockets = DefaultMaxSockets
	}
	if o.RingBytes == 0 {
		o.RingBytes = DefaultRingBytes
	}
	o.RingBytes = ringSize(o.RingBytes, uint32(os.Getpagesize()))
	if o.Clock == nil {
		o.Clock = SystemClock()
	}
}

// ringSize is the smallest size at or above want that the kernel accepts: a
// power of two and a multiple of the page (ringbuf_map_alloc()).
func ringSize(want, page uint32) uint32 {
	const largest = 1 << 30
	if want > largest {
		return largest
	}
	return max(page, 1<<bits.Len32(want-1))
}

// Probes are the programs that run and the maps they share. Its methods may
// be called from several goroutines.
type Probes struct {
	mu       sync.Mutex
	clock    *Clock
	maps     map[string]*ebpf.Map // nil: nothing could be loaded
	ring     *ringbuf.Reader
	hooks    []*hook
	sendHook string // "" : exchanges are not clocked

	record  ringbuf.Record
	first   *firstLook
	scan    scanner
	losses  Losses // those counted here, not in the kernel
	watched watched
}

// Load loads and attaches every program that this kernel and this caller's
// rights allow. What cannot run is a problem and the rest works; Probes is
// never nil, and when nothing works its methods do nothing.
func Load(opts Options) (*Probes, []event.Problem) {
	opts.setDefaults()
	p := &Probes{clock: opts.Clock, first: newFirstLook()}
	admin := privileged()
	all := "exchanges, retransmits and connections of every leg"

	k, err := openKernel()
	if err != nil {
		return p, []event.Problem{problem("kernel BTF", all, err, admin)}
	}
	// Before 5.11 maps count against RLIMIT_MEMLOCK; since then this does
	// nothing. Without CAP_SYS_RESOURCE it fails, and small maps may still fit.
	memlock := rlimit.RemoveMemlock()

	spec, err := configure(k, &opts)
	if err != nil {
		return p, []event.Problem{problem("BPF object", all, err, admin)}
	}
	if err := p.makeMaps(spec); err != nil {
		return p, []event.Problem{problem("BPF maps", all, errors.Join(err, memlock), admin)}
	}
	p.scan = newScanner(opts.MaxSockets)

	var problems []event.Problem
	if err := p.watch(opts.Ports, opts.Namespaces); err != nil {
		problems = append(problems, problem("watch list", "", err, admin))
	}
	problems = append(problems, p.attachAll(k, spec, opts.sendHook, admin)...)
	if len(p.hooks) == 0 {
		_ = p.closeMaps()
	}
	return p, problems
}

// configure opens the object and sets its constants and map sizes.
func configure(k *kernel, opts *Options) (*ebpf.CollectionSpec, error) {
	spec, err := loadProbes()
	if err != nil {
		return nil, err
	}
	args, _ := k.tracepoint("tcp_retransmit_skb")
	hasErr := uint8(0)
	if args >= 3 { // (sk, skb, err)
		hasErr = 1
	}
	if err := spec.Variables[probesVarRetransmitHasErr].Set(hasErr); err != nil {
		return nil, err
	}
	spec.Maps[probesMapNamespaces].MaxEntries = MaxNamespaces
	spec.Maps[probesMapSockets].MaxEntries = opts.MaxSockets
	spec.Maps[probesMapEvents].MaxEntries = opts.RingBytes
	return spec, nil
}

// makeMaps makes the maps that the programs share, and the ring's reader.
func (p *Probes) makeMaps(spec *ebpf.CollectionSpec) error {
	p.maps = map[string]*ebpf.Map{}
	for _, name := range []string{probesMapPorts, probesMapNamespaces, probesMapSockets, probesMapEvents, probesMapLost} {
		m, err := ebpf.NewMap(spec.Maps[name])
		if err != nil {
			return errors.Join(fmt.Errorf("map %s: %w", name, err), p.closeMaps())
		}
		p.maps[name] = m
	}
	ring, err := ringbuf.NewReader(p.maps[probesMapEvents])
	if err != nil {
		return errors.Join(fmt.Errorf("ring buffer: %w", err), p.closeMaps())
	}
	ring.SetDeadline(past) // Drain takes what is there and never waits
	p.ring = ring
	return nil
}

func (p *Probes) closeMaps() error {
	var errs []error
	if p.ring != nil {
		errs = append(errs, p.ring.Close())
	}
	for _, m := range p.maps {
		errs = append(errs, m.Close())
	}
	p.ring, p.maps = nil, nil
	return errors.Join(errs...)
}

// Available says whether any program runs.
func (p *Probes) Available() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.hooks) > 0
}

// SendHook names the send hook in use; "" when exchanges are not clocked.
func (p *Probes) SendHook() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sendHook
}

// Close detaches the programs and frees the maps. Events not drained are lost.
func (p *Probes) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, h := range p.hooks {
		errs = append(errs, h.close())
	}
	p.hooks, p.sendHook = nil, ""
	return errors.Join(append(errs, p.closeMaps())...)
}
