package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// relay joins the two ends of a leg packet by packet: a TUN device in each
// namespace instead of a veth pair. It delays, drops, doubles and reorders IP
// packets and leaves TCP to the two kernels: ACKs and RTTs stay true.
//
// Its threads share the Go runtime with the rest of the program: on a machine
// that is busy otherwise it can stand still for some hundred milliseconds by
// itself, which is then a true stall of the path.
type relay struct {
	ends [2]int // file descriptors: coordinator, worker
	ways map[Direction]*way
	done sync.WaitGroup
}

// Impairment of one direction. Percentages are of packets.
type Impairment struct {
	Delay, Jitter time.Duration // each packet takes Delay +- Jitter; the order stays
	Loss          float64
	Duplicate     float64
	// Reorder lets packets overtake: they do not wait. Needs a Delay.
	Reorder float64
}

// relayQueue bounds the packets on their way: 50 ms of a gigabit.
const relayQueue = 8192

// startRelay starts the threads that carry packets; with realtime they run
// before other programs, like the engine.
func startRelay(coordinator Namespace, l Link, realtime bool) (*relay, error) {
	r := &relay{ways: map[Direction]*way{}}
	for i, end := range []struct {
		ns     Namespace
		device string
	}{{coordinator, l.CoordinatorDevice}, {l.Worker, l.WorkerDevice}} {
		fd, err := openTUN(end.ns, end.device)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.ends[i] = fd
	}
	r.ways[Requests] = newWay(r.ends[0], r.ends[1])
	r.ways[Replies] = newWay(r.ends[1], r.ends[0])
	for _, w := range r.ways {
		for _, carry := range []func(){w.read, w.deliver} {
			r.done.Go(func() {
				runtime.LockOSThread() // the thread ends with its priority
				if realtime {
					setRealtime()
				}
				carry()
			})
		}
	}
	return r, nil
}

// openTUN makes a TUN device (IP packets, no header before them) in ns.
func openTUN(ns Namespace, name string) (fd int, err error) {
	err = ns.Do(func() error {
		fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("/dev/net/tun: %w", err)
		}
		req, err := unix.NewIfreq(name)
		if err == nil {
			req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
		}
		if err != nil {
			unix.Close(fd)
			return fmt.Errorf("TUN device %s: %w", name, err)
		}
		return nil
	})
	return fd, err
}

// close ends the threads, then the devices.
func (r *relay) close() error {
	for _, w := range r.ways {
		w.closed.Store(true)
	}
	r.done.Wait()
	var errs []error
	for _, fd := range r.ends {
		if fd != 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}

// way is one direction of a relay.
type way struct {
	in, out int // file descriptors
	closed  atomic.Bool
	queue   chan packet
	waiting atomic.Int64 // packets in the queue or in deliver's hands

	mu       sync.Mutex
	impaired Impairment
	rnd      *rand.Rand
	last     time.Time // when the latest queued packet is due

	packets, acted, overflow atomic.Uint64
}

type packet struct {
	data []byte
	due  time.Time
}

func newWay(in, out int) *way {
	return &way{in: in, out: out, queue: make(chan packet, relayQueue), rnd: rand.New(rand.NewPCG(7, 7))}
}

func (w *way) set(i Impairment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.impaired = i
	w.packets.Store(0)
	w.acted.Store(0)
}

// lookInterval is how long a reader waits for packets before it looks whether
// the relay has been closed.
const lookInterval = 100 // milliseconds

// read waits in the kernel, not in Go's poller, whose thread has no priority.
func (w *way) read() {
	defer close(w.queue)
	buf := make([]byte, 1<<16)
	ready := []unix.PollFd{{Fd: int32(w.in), Events: unix.POLLIN}}
	for !w.closed.Load() {
		if _, err := unix.Poll(ready, lookInterval); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		for {
			n, err := unix.Read(w.in, buf)
			if err != nil || n == 0 {
				break // nothing more for now
			}
			w.pass(buf[:n])
		}
	}
}

// pass decides what happens to a packet. One that need not wait is written from
// the reader's buffer.
func (w *way) pass(data []byte) {
	copies, wait, acted := w.fate()
	w.packets.Add(1)
	if acted {
		w.acted.Add(1)
	}
	for range copies {
		if wait.IsZero() {
			_, _ = unix.Write(w.out, data) // a full device loses it, as a wire would
			continue
		}
		w.waiting.Add(1)
		select {
		case w.queue <- packet{append([]byte(nil), data...), wait}:
		default:
			w.waiting.Add(-1)
			w.overflow.Add(1)
		}
	}
}

// fate draws copies to send and when; the zero time means at once.
func (w *way) fate() (copies int, due time.Time, acted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.impaired
	hit := func(percent float64) bool { return percent > 0 && w.rnd.Float64()*100 < percent }
	if hit(i.Loss) {
		return 0, time.Time{}, true
	}
	copies = 1
	if hit(i.Duplicate) {
		copies, acted = 2, true
	}
	if i.Delay == 0 && i.Jitter == 0 {
		if w.waiting.Load() > 0 { // behind what still waits
			return copies, w.last, acted
		}
		return copies, time.Time{}, acted
	}
	if hit(i.Reorder) {
		return copies, time.Time{}, true
	}
	delay := i.Delay
	if i.Jitter > 0 {
		delay += time.Duration((2*w.rnd.Float64() - 1) * float64(i.Jitter))
	}
	due = time.Now().Add(max(0, delay))
	if due.Before(w.last) {
		due = w.last
	}
	w.last = due
	return copies, due, acted || (i.Reorder == 0 && delay > 0)
}

func (w *way) deliver() {
	for p := range w.queue {
		if wait := time.Until(p.due); wait > 0 && !w.closed.Load() {
			pause := unix.NsecToTimespec(wait.Nanoseconds())
			_ = unix.Nanosleep(&pause, nil) // cut short by a signal: a packet comes early
		}
		_, _ = unix.Write(w.out, p.data)
		w.waiting.Add(-1)
	}
}
