package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"grayfail/lab/vm/verbs"
)

type agent struct {
	devices map[string]*verbs.Device
	pairs   map[string]*verbs.QueuePair
	conns   map[string]net.Conn
	listens map[string]net.Listener
	memory  [][]byte
}

func newAgent() *agent {
	return &agent{
		devices: make(map[string]*verbs.Device),
		pairs:   make(map[string]*verbs.QueuePair),
		conns:   make(map[string]net.Conn),
		listens: make(map[string]net.Listener),
	}
}

// do executes one command.
func (a *agent) do(words []string) (answer string, err error) {
	arg := arguments{words: words}
	switch verb := arg.text(); verb {
	case "pair": // NAME DEVICE: a queue pair in RESET; tells its number
		err = a.pair(&arg, &answer)
	case "init": // NAME PORT
		err = arg.call(a.pairs[arg.text()], func(q *verbs.QueuePair) error { return q.Init(uint8(arg.number())) })
	case "connect": // NAME PORT GID_INDEX PEER_GID PEER_NUMBER
		err = arg.call(a.pairs[arg.text()], func(q *verbs.QueuePair) error {
			return q.Connect(uint8(arg.number()), uint8(arg.number()), arg.addr(), uint32(arg.number()))
		})
	case "rts": // NAME
		err = arg.call(a.pairs[arg.text()], (*verbs.QueuePair).Send)
	case "fail": // NAME
		err = arg.call(a.pairs[arg.text()], (*verbs.QueuePair).Fail)
	case "destroy": // NAME
		err = arg.call(a.pairs[arg.text()], (*verbs.QueuePair).Destroy)
	case "many": // DEVICE PORT COUNT: queue pairs in INIT
		err = a.many(&arg)
	case "register": // DEVICE BYTES
		err = a.register(&arg)
	case "memlock": // BYTES: RLIMIT_MEMLOCK
		n := uint64(arg.number())
		if err = arg.err; err == nil {
			err = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: n, Max: n})
		}
	case "listen": // ADDRESS: connections wait in the kernel
		err = a.listen(arg.text())
	case "serve": // ADDRESS: what comes is sent back
		addr := arg.text()
		if err = a.listen(addr); err == nil {
			go echo(a.listens[addr])
		}
	case "dial": // NAME LOCAL_IP PEER
		err = a.dial(&arg)
	case "exchange": // NAME BYTES: send, and wait for as many
		err = a.exchange(&arg)
	case "send": // NAME BYTES
		err = a.send(&arg)
	case "close": // NAME
		if c := a.conns[arg.text()]; c != nil {
			err = c.Close()
		}
	default:
		err = fmt.Errorf("unknown command %q", verb)
	}
	if err == nil {
		err = arg.err
	}
	return answer, err
}

func (a *agent) device(name string) (*verbs.Device, error) {
	if d := a.devices[name]; d != nil {
		return d, nil
	}
	d, err := verbs.Open(name)
	if err == nil {
		a.devices[name] = d
	}
	return d, err
}

func (a *agent) pair(arg *arguments, answer *string) error {
	name := arg.text()
	d, err := a.device(arg.text())
	if err != nil {
		return err
	}
	q, err := d.QueuePair()
	if err != nil {
		return err
	}
	a.pairs[name] = q
	*answer = strconv.FormatUint(uint64(q.Number), 10)
	return nil
}

func (a *agent) many(arg *arguments) error {
	d, err := a.device(arg.text())
	port, count := arg.number(), arg.number()
	for i := 0; i < count && err == nil; i++ {
		var q *verbs.QueuePair
		if q, err = d.QueuePair(); err == nil {
			err = q.Init(uint8(port))
		}
	}
	return err
}

func (a *agent) register(arg *arguments) error {
	d, err := a.device(arg.text())
	if err != nil {
		return err
	}
	b, err := unix.Mmap(-1, 0, arg.number(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	a.memory = append(a.memory, b)
	return d.RegisterMemory(b)
}

func (a *agent) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		a.listens[addr] = l
	}
	return err
}

func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}()
	}
}

func (a *agent) dial(arg *arguments) error {
	name, local, peer := arg.text(), arg.addr(), arg.text()
	d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0))}
	c, err := d.Dial("tcp", peer)
	if err == nil {
		a.conns[name] = c
	}
	return err
}

func (a *agent) send(arg *arguments) error {
	c, n := a.conns[arg.text()], arg.number()
	if c == nil {
		return fmt.Errorf("no such connection")
	}
	_, err := c.Write(make([]byte, n))
	return err
}

func (a *agent) exchange(arg *arguments) error {
	c, n := a.conns[arg.text()], arg.number()
	if c == nil {
		return fmt.Errorf("no such connection")
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, n))
		sent <- err
	}()
	if _, err := io.CopyN(io.Discard, c, int64(n)); err != nil {
		return err
	}
	return <-sent
}
