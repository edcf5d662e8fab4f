package main

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/prometheus/common/model"

	"grayfail/internal/strictyaml"
)

// config is the file of --config.file, section 8 of the contract.
type config struct {
	Namespaces namespacesConfig `yaml:"namespaces"`
	Legs       legsConfig       `yaml:"legs"`
	RDMA       rdmaConfig       `yaml:"rdma"`
	Requests   requestsConfig   `yaml:"requests"`
	Detector   detectorConfig   `yaml:"detector"`
}

type namespacesConfig struct {
	Names []string `yaml:"names"`
	Auto  bool     `yaml:"auto"`
}

// rdmaConfig says how often queue pairs are listed, if at all: collector/rdma
// has why an operator may want that less often, or not.
type rdmaConfig struct {
	QueuePairs bool           `yaml:"queue_pairs"`
	Interval   durationConfig `yaml:"queue_pairs_interval"`
}

type legsConfig struct {
	Discover discoverConfig    `yaml:"discover"`
	Static   []staticLegConfig `yaml:"static"`
}

type discoverConfig struct {
	Ports         []uint16 `yaml:"ports"`
	Processes     []string `yaml:"processes"`
	RDMAAddresses bool     `yaml:"rdma_addresses"`
}

type staticLegConfig struct {
	Name   string     `yaml:"name"`
	Peer   peerConfig `yaml:"peer"`
	Expect string     `yaml:"expect"`
}

type requestsConfig struct {
	Proxies   []proxyConfig    `yaml:"proxies"`
	LlamaLogs []llamaLogConfig `yaml:"llama_logs"`
	OTLP      otlpConfig       `yaml:"otlp"`
	Push      pushConfig       `yaml:"push"`
}

type proxyConfig struct {
	Name           string         `yaml:"name"`
	Listen         string         `yaml:"listen"`
	Upstream       string         `yaml:"upstream"`
	RequestTimeout durationConfig `yaml:"request_timeout"`
	Model          string         `yaml:"model"`
}

type llamaLogConfig struct {
	Name  string `yaml:"name"`
	Path  string `yaml:"path"`
	Model string `yaml:"model"`
}

type otlpConfig struct {
	HTTP string `yaml:"http"`
	GRPC string `yaml:"grpc"`
}

type pushConfig struct {
	Enabled bool `yaml:"enabled"`
}

type detectorConfig struct {
	Threshold  float64        `yaml:"threshold"`
	MinSamples int            `yaml:"min_samples"`
	Window     int            `yaml:"window"`
	MaxAge     durationConfig `yaml:"max_age"`
}

// durationConfig takes Prometheus durations: 500ms, 180s, 6h, 1d12h.
type durationConfig time.Duration

func (d *durationConfig) UnmarshalText(text []byte) error {
	v, err := model.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 500ms, 180s or 6h", text)
	}
	*d = durationConfig(v)
	return nil
}

// peerConfig is an ip:port; names are not resolved, since the kernel's sockets
// carry none.
type peerConfig struct{ netip.AddrPort }

func (p *peerConfig) UnmarshalText(text []byte) error {
	v, err := netip.ParseAddrPort(string(text))
	if err != nil || v.Port() == 0 {
		return fmt.Errorf("%q is not ip:port such as 10.0.0.2:50052 or [fd00::2]:50052", text)
	}
	p.AddrPort = netip.AddrPortFrom(v.Addr().Unmap(), v.Port())
	return nil
}

const defaultRequestTimeout = durationConfig(180 * time.Second)

func defaultConfig() config {
	return config{
		Legs: legsConfig{Discover: discoverConfig{Ports: []uint16{50052}, RDMAAddresses: true}},
		RDMA: rdmaConfig{QueuePairs: true, Interval: durationConfig(5 * time.Second)},
		Detector: detectorConfig{
			Threshold: 0.5, MinSamples: 10, Window: 256, MaxAge: durationConfig(6 * time.Hour),
		},
	}
}

// loadConfig reads path; "" gives the defaults. Every problem is in the error,
// one a line, prefixed with the path.
func loadConfig(path string) (config, error) {
	if path == "" {
		return defaultConfig(), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return config{}, err
	}
	cfg, err := parseConfig(data)
	if err != nil {
		return config{}, prefixLines(path, err)
	}
	return cfg, nil
}

func parseConfig(data []byte) (config, error) {
	cfg := defaultConfig()
	lines, err := strictyaml.Decode(data, &cfg)
	if err != nil {
		return config{}, err
	}
	return cfg, cfg.check(lines)
}
