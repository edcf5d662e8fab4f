package main

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"grayfail/collector/legs"
	"grayfail/collector/netns"
	"grayfail/collector/push"
	"grayfail/collector/qdisc"
	"grayfail/collector/rdma"
	"grayfail/collector/rdma/join"
	"grayfail/collector/sockdiag"
	"grayfail/detector"
	"grayfail/ebpf"
	"grayfail/event"
	"grayfail/export"
)

const (
	maxWatchedPorts = 64
	maxLegs         = 256
)

// server holds the parts of one exporter.
type server struct {
	flags     serveFlags
	log       zerolog.Logger
	cfg       atomic.Pointer[config]
	registry  *prometheus.Registry
	probes    *ebpf.Probes
	rec       *recorder
	status    *statuses
	pipe      *pipeline
	sampler   *sampler
	publisher *publisher
	proxies   *proxySet
	logs      *logSet
	otlp      *otlpSet
	push      *push.Handler
	state     *stateKeeper // nil without --state.dir
	busy      busy
	listening atomic.Bool
	rights    rights

	reloading sync.Mutex
	reloaded  atomic.Pointer[event.ConfigReload]
}

func (s *server) config() *config { return s.cfg.Load() }

// newServer builds everything and starts nothing. What the kernel refuses is
// in the statuses, never an error: errors are the operator's own settings.
func newServer(f serveFlags, log zerolog.Logger) (*server, error) {
	cfg, err := loadConfig(f.configFile)
	if err != nil {
		return nil, err
	}
	s := &server{flags: f, log: log, registry: newRegistry(), status: newStatuses("qdisc", "tcp_events", "tcp_sockets", "rdma", "requests")}
	s.cfg.Store(&cfg)
	s.busy.list = s.inFlight
	s.reloaded.Store(&event.ConfigReload{Successful: true, TimeNS: time.Now().UnixNano()})
	if f.record != "" {
		if s.rec, err = newRecorder(f.record, f.recordMaxBytes); err != nil {
			return nil, err
		}
	}
	if f.stateDir != "" {
		if err := makeStateDir(f.stateDir); err != nil {
			return nil, err
		}
	}
	metrics, err := export.New(export.Options{Registerer: s.registry, Strata: f.strata})
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	spaces := netns.NewSet(spacesConfig(&cfg))
	judge := newJudge(0)
	table := legs.New(s.tableConfig(&cfg, judge))
	probes, problems := ebpf.Load(ebpf.Options{Ports: cfg.Legs.Discover.Ports})
	s.probes = probes
	s.status.loaded(problems, probes.Available(), probes.SendHook() != "")
	s.pipe = &pipeline{
		probes: probes, legs: table, metrics: metrics, log: export.NewLog(log), api: export.NewAPI(reasonText),
		rec: s.rec, status: s.status, now: time.Now, det: detector.New(detectorSettings(&cfg)),
	}
	if f.stateDir != "" {
		s.state = newStateKeeper(f.stateDir, f.stateInterval, s.pipe, s.status, log)
	}
	s.proxies = newProxySet(log, s.pipe.submitRequest, metrics.HTTPStages)
	s.logs = newLogSet(f.stateDir, s.pipe.submitRequest)
	s.otlp = newOTLPSet(log, s.pipe.submitRequest)
	s.push = push.New(push.Config{}, push.Hooks{Emit: s.pipe.submitRequest})
	s.sampler = &sampler{
		interval: f.sampleInterval, spaces: spaces, qdiscs: qdisc.New(qdisc.Options{}), sockets: sockdiag.New(sockdiag.Options{}), rdma: rdma.New(rdmaOptions(&cfg)), judge: judge,
		addresses: legs.NewAddressReader(), legs: table, pipe: s.pipe, status: s.status, now: time.Now,
		ports:     func() []uint16 { return watchedPorts(s.config()) },
		watch:     s.watch,
		discovery: newDiscovery(s.config, discoverEvery),
	}
	s.publisher = &publisher{server: s, metrics: metrics, interval: f.sampleInterval, correlator: s.pipe.det.NewCorrelator()}
	s.log.Info().Float64("threshold", cfg.Detector.Threshold).Int("min_samples", cfg.Detector.MinSamples).
		Int("window", cfg.Detector.Window).Str("max_age", time.Duration(cfg.Detector.MaxAge).String()).
		Str("send_hook", probes.SendHook()).Interface("ports", watchedPorts(&cfg)).Msg("grayfail_exporter starts")
	s.requestsStatus()
	return s, nil
}

// watch hands ports and namespaces to the BPF programs.
func (s *server) watch(ports []uint16, namespaces []uint32) {
	if !s.probes.Available() {
		return
	}
	if err := s.probes.Watch(ports, namespaces); err != nil {
		s.log.Warn().Err(err).Msg("tcp_events: cannot change what is watched")
	}
}

// watchedPorts are the discovered ports and those of static legs.
func watchedPorts(c *config) []uint16 { return configuredLegs(c).WatchedPorts() }

func spacesConfig(c *config) netns.Config {
	return netns.Config{Names: c.Namespaces.Names, Auto: c.Namespaces.Auto}
}

// configuredLegs are the legs that the file asks for.
func configuredLegs(c *config) legs.Config {
	out := legs.Config{Ports: c.Legs.Discover.Ports, Max: maxLegs}
	for _, leg := range c.Legs.Static {
		out.Static = append(out.Static, legs.Static{Name: leg.Name, Peer: leg.Peer.AddrPort, Expect: leg.Expect})
	}
	return out
}

func legsTableConfig(c *config, judge *join.Judge) legs.Config {
	out := configuredLegs(c)
	out.Join = judge.Join
	return out
}

func rdmaOptions(c *config) rdma.Options {
	return rdma.Options{Every: time.Duration(c.RDMA.Interval), NoQueuePairs: !c.RDMA.QueuePairs}
}

// newJudge joins legs with RDMA; it looks at processes in /proc. A settling of
// 0 is the default.
func newJudge(settling time.Duration) *join.Judge {
	proc := os.DirFS("/proc")
	return join.New(join.Options{Settling: settling, Process: func(pid int) join.Process { return join.ReadProcess(proc, pid) }})
}

func detectorSettings(c *config) detector.Config {
	d := detector.DefaultConfig()
	d.Threshold, d.MinSamples = c.Detector.Threshold, c.Detector.MinSamples
	d.Window, d.MaxAge = c.Detector.Window, time.Duration(c.Detector.MaxAge)
	return d
}

// tableConfig is that of a server, which knows what is in flight.
func (s *server) tableConfig(c *config, judge *join.Judge) legs.Config {
	out := legsTableConfig(c, judge)
	out.InFlight = s.busy.since
	return out
}

// requestsStatus says what the sources of requests cannot do.
func (s *server) requestsStatus() {
	cfg := s.config()
	problems := s.otlp.status()
	if len(cfg.Requests.Proxies) == 0 && len(cfg.Requests.LlamaLogs) == 0 && cfg.Requests.OTLP == (otlpConfig{}) && !cfg.Requests.Push.Enabled {
		problems = append(problems, event.Problem{Reason: "no_source_configured", Detail: "no proxy, no log, no traces and no push: legs are watched, but no request can be judged; set requests.proxies, requests.llama_logs, requests.otlp or requests.push.enabled"})
	}
	if p := s.rec.problem(); p.Reason != "" {
		problems = append(problems, p)
	}
	upstream, unseen := s.proxies.status()
	logs, missed := s.logs.status()
	s.status.tried("requests", 0, s.pipe.lost()+unseen+missed, slices.Concat(problems, upstream, logs), nil)
}
