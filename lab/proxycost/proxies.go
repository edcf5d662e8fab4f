package proxycost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// proxy is a running program between a client and the engine.
type proxy struct {
	name, address string
	cmd           *exec.Cmd
	exited        chan error
	said          *bytes.Buffer // read it after exited
}

// nginxConfig is the least that streams: one process, so that its CPU time is
// that of one clock; no buffering, no log.
const nginxConfig = `daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	server {
		listen %s;
		location / {
			proxy_pass http://%s;
			proxy_http_version 1.1;
			proxy_buffering off;
		}
	}
}
`

const exporterConfig = "legs: {discover: {ports: [], rdma_addresses: false}}\nrequests: {proxies: [{name: cost, listen: %q, upstream: \"http://%s\"}]}\n"

func startNginx(ctx context.Context, dir, upstream string) (*proxy, error) {
	return start(ctx, "nginx", dir, nginxConfig, upstream, func(config string) []string {
		return []string{"nginx", "-p", dir, "-c", config}
	})
}

func startExporter(ctx context.Context, dir, binary, upstream string) (*proxy, error) {
	return start(ctx, "grayfail_exporter", dir, exporterConfig, upstream, func(config string) []string {
		return []string{binary, "serve", "--config.file", config, "--web.listen-address", "127.0.0.1:0", "--log.level", "warn"}
	})
}

// start runs a program with a configuration and waits until it listens.
func start(ctx context.Context, name, dir, config, upstream string, argv func(string) []string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil { // the program opens it again
		return nil, err
	}
	file := filepath.Join(dir, name+".conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, address, upstream), 0o600); err != nil {
		return nil, err
	}
	args := argv(file)
	p := &proxy{name: name, address: address, cmd: exec.Command(args[0], args[1:]...), exited: make(chan error, 1), said: new(bytes.Buffer)}
	p.cmd.Stderr = p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	return p, p.listening(ctx)
}

func (p *proxy) listening(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not listen on %s: %w", p.name, p.address, err), p.stop())
		case err := <-p.exited:
			p.exited <- err
			return fmt.Errorf("%s: %w: %s", p.name, err, p.said)
		}
	}
}

// stop ends the program.
func (p *proxy) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-p.exited:
		return err
	case <-time.After(10 * time.Second):
		return errors.Join(p.cmd.Process.Kill(), <-p.exited)
	}
}

// cpu is the CPU time of all threads so far, in nanoseconds: the process's
// clock, as clock_getcpuclockid(3) makes its number (MAKE_PROCESS_CPUCLOCK
// with CPUCLOCK_SCHED, include/linux/posix-timers_types.h).
func (p *proxy) cpu() (time.Duration, error) {
	const sched = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid)<<3|sched, &t); err != nil {
		return 0, fmt.Errorf("CPU clock of %s: %w", p.name, err)
	}
	return time.Duration(t.Nano()), nil
}
