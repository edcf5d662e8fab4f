package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Cluster is a running coordinator with its two workers.
type Cluster struct {
	Options
	// Coordinator is the namespace of the engine's server: the exporter under
	// test belongs here.
	Coordinator Namespace
	Links       []Link
	// EngineVersion says what runs; a stand-in says so itself.
	EngineVersion string
	// RunDir holds the logs of this run.
	RunDir string

	lock     *instanceLock
	launcher *launcher
	http     *http.Client

	mu        sync.Mutex
	state     state
	workers   []*Process // by link
	server    *Process
	extra     []*Process // by Spawn, in order
	injectors []Injector
	relays    []*relay
	forwards  []net.Listener
	closed    bool
	closeErr  error
}

// Start removes what a killed run of the instance left, makes the namespaces
// and brings the engine up. When it fails nothing is left.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("lab: needs root: it makes network namespaces")
	}
	lock, err := lockInstance(o.Instance)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Options: o, Coordinator: coordinatorNamespace(o.Instance), Links: links(o.Instance),
		RunDir: filepath.Join(o.Dir, "run", o.Instance),
		lock:   lock, launcher: newLauncher(), state: state{Boot: bootID()},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	c.http = c.NewClient()
	if err := c.clean(); err != nil {
		return nil, fmt.Errorf("clean up after an earlier run: %w", err)
	}
	if err := os.RemoveAll(c.RunDir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.RunDir, 0o755); err != nil {
		return nil, err
	}
	if err := c.network(ctx); err != nil {
		return nil, err
	}
	return c, c.startEngine(ctx)
}

// Clean removes what a killed run of an instance left behind.
func Clean(o Options) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	lock, err := lockInstance(o.Instance)
	if err != nil {
		return err
	}
	c := &Cluster{Options: o, RunDir: filepath.Join(o.Dir, "run", o.Instance)}
	return errors.Join(c.clean(), lock.unlock())
}

// clean ends recorded processes, then drops the names of the namespaces.
func (c *Cluster) clean() error {
	err := killLeftovers(c.RunDir)
	for _, ns := range namespaces(c.Instance) {
		err = errors.Join(err, ns.remove())
	}
	return err
}

// network makes the namespaces and joins them. Both ends of each pair are born
// inside their namespaces: the host sees none of it.
func (c *Cluster) network(ctx context.Context) error {
	for _, ns := range namespaces(c.Instance) {
		if err := ns.create(ctx); err != nil {
			return err
		}
	}
	for _, l := range c.Links {
		if err := c.join(ctx, l); err != nil {
			return fmt.Errorf("leg %s: %w", l.Leg, err)
		}
	}
	return nil
}

func (c *Cluster) join(ctx context.Context, l Link) error {
	if c.Relay {
		r, err := startRelay(c.Coordinator, l, !c.Fair)
		if err != nil {
			return err
		}
		c.relays = append(c.relays, r)
	} else if _, err := run(ctx, "ip", "-n", string(c.Coordinator), "link", "add", l.CoordinatorDevice, "type", "veth",
		"peer", "name", l.WorkerDevice, "netns", string(l.Worker)); err != nil {
		return err
	}
	for _, end := range []struct {
		ns     Namespace
		device string
		addr   netip.Prefix
	}{
		{c.Coordinator, l.CoordinatorDevice, l.CoordinatorAddr},
		{l.Worker, l.WorkerDevice, l.WorkerAddr},
	} {
		for _, args := range [][]string{
			// A relay must not lose packets for being late once.
			{"link", "set", end.device, "txqueuelen", "10000"},
			{"addr", "add", end.addr.String(), "dev", end.device},
			{"link", "set", end.device, "up"},
			// By route, because net.ipv4.tcp_congestion_control takes only what
			// the machine's tcp_allowed_congestion_control lists, and that is
			// not the lab's to change.
			{"route", "change", end.addr.Masked().String(), "dev", end.device, "src", end.addr.Addr().String(), "congctl", Congestion},
		} {
			if _, err := run(ctx, "ip", append([]string{"-n", string(end.ns)}, args...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// engineStart bounds how long the engine may take to load the model over RPC.
const engineStart = 90 * time.Second

func (c *Cluster) startEngine(ctx context.Context) error {
	if c.Engine == EngineNone {
		return nil
	}
	var e engine = &llama{}
	if c.Engine == EngineStandin {
		e = &standinEngine{shape: c.Standin}
	}
	version, err := e.prepare(ctx, &c.Options)
	if err != nil {
		return err
	}
	c.EngineVersion = version
	ctx, cancel := context.WithTimeout(ctx, engineStart)
	defer cancel()
	for _, l := range c.Links {
		p, err := c.start(c.engineCommand(e.worker(l)))
		if err != nil {
			return err
		}
		c.workers = append(c.workers, p)
		// Listening is read from /proc: a connection to probe it would be
		// served, one at a time, like any other client.
		if err := p.WaitFor(ctx, "it listens", func(context.Context) error { return listening(p.PID(), l.Peer()) }); err != nil {
			return err
		}
	}
	if c.server, err = c.start(c.engineCommand(e.coordinator(c.Coordinator, c.Links, c.Slots))); err != nil {
		return err
	}
	fmt.Fprintf(c.Log, "engine: %s, loading the model over two RPC workers\n", version)
	return c.server.WaitFor(ctx, "it was healthy", func(ctx context.Context) error { return c.Get(ctx, c.EngineURL()+"/health") })
}

func (c *Cluster) engineCommand(cmd Command) Command {
	cmd.Realtime = !c.Fair
	return cmd
}

// start runs a command and records it for the next run's clean-up.
func (c *Cluster) start(cmd Command) (*Process, error) {
	p, err := newProcess(c.launcher, c.RunDir, cmd)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ticks, err := procStat(p.PID()); err == nil {
		c.state.Processes = append(c.state.Processes, processRef{cmd.Name, p.PID(), ticks})
	}
	return p, c.state.save(c.RunDir)
}

// Spawn runs a program beside the engine, by default in the coordinator's
// namespace. Close stops it first, in reverse order of start.
func (c *Cluster) Spawn(cmd Command) (*Process, error) {
	if cmd.Namespace == "" {
		cmd.Namespace = c.Coordinator
	}
	p, err := c.start(cmd)
	if p != nil {
		c.mu.Lock()
		c.extra = append(c.extra, p)
		c.mu.Unlock()
	}
	return p, err
}

// ExecIn runs a command to its end in one of the namespaces.
func (c *Cluster) ExecIn(ctx context.Context, ns Namespace, name string, args ...string) (string, error) {
	return ns.Exec(ctx, name, args...)
}

// Link gives a leg by its name.
func (c *Cluster) Link(leg string) (Link, error) {
	for _, l := range c.Links {
		if l.Leg == leg {
			return l, nil
		}
	}
	return Link{}, fmt.Errorf("no leg %q: there are %s, %s", leg, LegA, LegB)
}

// Worker gives the process at the far end of a leg.
func (c *Cluster) Worker(leg string) (*Process, error) {
	i := slices.IndexFunc(c.Links, func(l Link) bool { return l.Leg == leg })
	if i < 0 || i >= len(c.workers) {
		return nil, fmt.Errorf("no worker for leg %q", leg)
	}
	return c.workers[i], nil
}

// Server gives the coordinator's engine process.
func (c *Cluster) Server() *Process { return c.server }

// EngineLogs lists the log files of server and workers.
func (c *Cluster) EngineLogs() []string {
	out := []string{c.server.LogPath}
	for _, w := range c.workers {
		out = append(out, w.LogPath)
	}
	return out
}

// Close ends everything in order: injectors, spawned programs, coordinator,
// workers, namespaces. It can be called again and says the same.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.closeErr
	}
	c.closed = true
	var errs []error
	for _, in := range slices.Backward(c.injectors) {
		errs = append(errs, in.Clear())
	}
	for _, l := range c.forwards {
		errs = append(errs, l.Close())
	}
	for _, p := range slices.Backward(c.extra) {
		errs = append(errs, p.Stop())
	}
	// A coordinator that loses its workers aborts: it goes first.
	if c.server != nil {
		errs = append(errs, c.server.Stop())
	}
	for _, p := range c.workers {
		errs = append(errs, p.Stop())
	}
	for _, r := range c.relays {
		errs = append(errs, r.close())
	}
	c.launcher.stop()
	for _, ns := range namespaces(c.Instance) {
		errs = append(errs, ns.remove())
	}
	if err := os.Remove(statePath(c.RunDir)); err != nil && !os.IsNotExist(err) {
		errs = append(errs, err)
	}
	c.http.CloseIdleConnections()
	errs = append(errs, c.lock.unlock())
	c.closeErr = errors.Join(errs...)
	return c.closeErr
}

// NewClient speaks HTTP from inside the coordinator's namespace, over
// connections of its own.
func (c *Cluster) NewClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return c.Coordinator.Dial(ctx, network, addr)
		},
	}}
}
