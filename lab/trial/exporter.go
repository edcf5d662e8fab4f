package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"grayfail/event"
	"grayfail/lab"
)

// Address of the exporter inside the coordinator's namespace, and the name of
// its proxy.
const (
	ExporterAddr = "127.0.0.1:10550"
	proxyName    = "main"
)

// workerExporterPort is that of the first worker's exporter; the others follow.
const workerExporterPort = 10551

// Exporter is the program under test, watching the namespace it runs in.
type Exporter struct {
	*lab.Process
	// Addr is where it listens.
	Addr    string
	cluster *lab.Cluster
	// Record is the path of its recording, "" without one.
	Record string
}

// ExporterOptions say what to run.
type ExporterOptions struct {
	Binary string
	Record string   // file to record to; "" records nothing
	Args   []string // further flags
}

// StartExporter writes a configuration that names both legs and puts a proxy
// before the engine, and waits until the exporter is ready.
func StartExporter(ctx context.Context, c *lab.Cluster, o ExporterOptions) (*Exporter, error) {
	return start(ctx, c, c.Coordinator, "exporter", ExporterAddr, exporterConfig(c), o)
}

// StartWorkerExporter runs an exporter on the host of one worker: it sees that
// namespace and nothing else, and the coordinator reaches it as it reaches the
// worker.
func StartWorkerExporter(ctx context.Context, c *lab.Cluster, leg string, o ExporterOptions) (*Exporter, error) {
	l, err := c.Link(leg)
	if err != nil {
		return nil, err
	}
	port := workerExporterPort + slices.Index(c.Links, l)
	addr := netip.AddrPortFrom(l.WorkerAddr.Addr(), uint16(port)).String()
	return start(ctx, c, l.Worker, "exporter-"+leg, addr, fmt.Sprintf("legs:\n  discover: {ports: [%d]}\n", lab.RPCPort), o)
}

// start waits until the exporter is ready.
func start(ctx context.Context, c *lab.Cluster, ns lab.Namespace, name, addr, config string, o ExporterOptions) (*Exporter, error) {
	if _, err := os.Stat(o.Binary); err != nil {
		return nil, fmt.Errorf("exporter: %w (make build)", err)
	}
	file := filepath.Join(c.RunDir, name+".yml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	argv := []string{o.Binary, "serve", "--config.file=" + file, "--web.listen-address=" + addr}
	if o.Record != "" {
		argv = append(argv, "--record="+o.Record)
	}
	p, err := c.Spawn(lab.Command{Name: name, Namespace: ns, Argv: append(argv, o.Args...)})
	if err != nil {
		return nil, err
	}
	e := &Exporter{Process: p, Addr: addr, cluster: c, Record: o.Record}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return e, p.WaitFor(ctx, "it was ready", func(ctx context.Context) error { return c.Get(ctx, e.URL("/-/ready")) })
}

func exporterConfig(c *lab.Cluster) string {
	var b strings.Builder
	fmt.Fprintf(&b, "legs:\n  discover: {ports: [%d]}\n  static:\n", lab.RPCPort)
	for _, l := range c.Links {
		fmt.Fprintf(&b, "    - {name: %s, peer: %q}\n", l.Leg, l.Peer())
	}
	fmt.Fprintf(&b, "requests:\n  proxies:\n    - {name: %s, listen: \"127.0.0.1:%d\", upstream: %q, request_timeout: 180s}\n  push: {enabled: true}\n",
		proxyName, lab.ProxyPort, c.EngineURL())
	return b.String()
}

// URL of a path of the exporter.
func (e *Exporter) URL(path string) string { return "http://" + e.Addr + path }

// ProxyURL is where requests go.
func (e *Exporter) ProxyURL() string { return fmt.Sprintf("http://127.0.0.1:%d", lab.ProxyPort) }

// Rows are the proxied requests' rows of one phase, oldest first.
func (e *Exporter) Rows(ctx context.Context, phase event.Phase) ([]event.Row, error) {
	body, err := e.cluster.Fetch(ctx, e.URL("/api/v1/requests?limit=10000"))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Requests []event.Row `json:"requests"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("/api/v1/requests: %w", err)
	}
	var rows []event.Row
	for i := len(answer.Requests) - 1; i >= 0; i-- {
		if r := answer.Requests[i]; r.Phase == phase && r.Source == proxyName {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

var errNotYet = errors.New("not all requests are judged yet")

// AwaitRows is Rows once there are n of them: a verdict may wait some seconds
// for late neighbours.
func (e *Exporter) AwaitRows(ctx context.Context, phase event.Phase, n int) (rows []event.Row, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err = e.WaitFor(ctx, fmt.Sprintf("%d requests were judged", n), func(ctx context.Context) error {
		var err error
		if rows, err = e.Rows(ctx, phase); err == nil && len(rows) < n {
			err = fmt.Errorf("%w: %d of %d", errNotYet, len(rows), n)
		}
		return err
	})
	return rows, err
}
