package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"grayfail/internal/strictyaml"
)

// check completes defaults that depend on other fields and returns every value
// that cannot work.
func (c *config) check(lines strictyaml.Lines) error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, lines.Error(field, format, args...))
	}
	c.checkLegs(bad)
	c.checkDiscovery(bad)
	c.checkProxies(bad)
	c.checkSources(bad)
	d := c.Detector
	if !(d.Threshold > 0 && d.Threshold < 1) {
		bad("detector.threshold", "%g is outside 0 to 1 (exclusive)", d.Threshold)
	}
	if d.MinSamples < 5 || d.MinSamples > 1000 {
		bad("detector.min_samples", "%d is outside 5 to 1000", d.MinSamples)
	}
	if d.Window < d.MinSamples || d.Window > 4096 {
		bad("detector.window", "%d is outside min_samples (%d) to 4096", d.Window, d.MinSamples)
	}
	if d.MaxAge <= 0 {
		bad("detector.max_age", "must be more than 0")
	}
	for i, name := range c.Namespaces.Names {
		field := fmt.Sprintf("namespaces.names[%d]", i)
		if name == "" || strings.Contains(name, "/") || !plainName(name) || name == "." || name == ".." {
			bad(field, "%q is not a name under /run/netns", name)
		}
		if slices.Index(c.Namespaces.Names, name) != i {
			bad(field, "%q is listed twice", name)
		}
	}
	return errors.Join(errs...)
}

type badFunc func(field, format string, args ...any)

func (c *config) checkLegs(bad badFunc) {
	for i, p := range c.Legs.Discover.Ports {
		field := fmt.Sprintf("legs.discover.ports[%d]", i)
		if p == 0 {
			bad(field, "0 is not a port: 1 to 65535")
		}
		if slices.Index(c.Legs.Discover.Ports, p) != i {
			bad(field, "%d is listed twice", p)
		}
	}
	if n := len(watchedPorts(c)); n > maxWatchedPorts {
		bad("legs", "%d ports of discover.ports and static peers together: at most %d are watched", n, maxWatchedPorts)
	}
	if len(c.Legs.Static) > maxLegs {
		bad("legs.static", "%d legs: at most %d", len(c.Legs.Static), maxLegs)
	}
	names, peers := map[string]bool{}, map[string]bool{}
	for i := range c.Legs.Static {
		leg := &c.Legs.Static[i]
		field := fmt.Sprintf("legs.static[%d]", i)
		switch {
		case leg.Name == "":
			bad(field+".name", "is needed")
		case names[leg.Name]:
			bad(field+".name", "%q is used twice", leg.Name)
		case leg.Name == "other":
			bad(field+".name", `"other" is reserved for legs beyond the bound`)
		case !plainName(leg.Name):
			bad(field+".name", "%q: at most 64 printable characters", leg.Name)
		}
		names[leg.Name] = true
		if !leg.Peer.IsValid() {
			bad(field+".peer", "is needed: ip:port")
		} else if peers[leg.Peer.String()] {
			bad(field+".peer", "%s is used twice", leg.Peer)
		}
		peers[leg.Peer.String()] = true
		if leg.Expect == "" {
			leg.Expect = "auto"
		}
		if !slices.Contains([]string{"auto", "rdma", "tcp"}, leg.Expect) {
			bad(field+".expect", "%q: allowed are auto, rdma, tcp", leg.Expect)
		}
	}
}

// maxProcesses bounds the names that each connection is compared with.
const maxProcesses = 64

// Queue pairs are listed this often: judgements want a list that is younger
// than 30 s.
const (
	shortestListing = durationConfig(time.Second)
	longestListing  = durationConfig(20 * time.Second)
)

func (c *config) checkDiscovery(bad badFunc) {
	names := c.Legs.Discover.Processes
	if len(names) > maxProcesses {
		bad("legs.discover.processes", "%d names: at most %d", len(names), maxProcesses)
	}
	for i, name := range names {
		field := fmt.Sprintf("legs.discover.processes[%d]", i)
		switch {
		case name == "" || strings.Contains(name, "/") || !plainName(name):
			bad(field, "%q is not a name as in /proc/PID/comm, without a path", name)
		case slices.Index(names, name) != i:
			bad(field, "%q is listed twice", name)
		}
	}
	if d := c.RDMA.Interval; d < shortestListing || d > longestListing {
		bad("rdma.queue_pairs_interval", "%s is outside 1s to 20s; to list no queue pairs, set queue_pairs: false", time.Duration(d))
	}
}

func (c *config) checkProxies(bad badFunc) {
	names, listens := map[string]bool{"push": true, "otlp": true}, map[string]bool{}
	for i := range c.Requests.Proxies {
		p := &c.Requests.Proxies[i]
		field := fmt.Sprintf("requests.proxies[%d]", i)
		checkName(bad, field+".name", p.Name, names)
		checkListen(bad, field+".listen", p.Listen)
		if p.Listen != "" && listens[p.Listen] {
			bad(field+".listen", "%s is used twice", p.Listen)
		}
		listens[p.Listen] = true
		checkUpstream(bad, field+".upstream", p)
		if p.RequestTimeout == 0 {
			p.RequestTimeout = defaultRequestTimeout
		}
		if p.RequestTimeout < 0 {
			bad(field+".request_timeout", "must be more than 0")
		}
		if p.Model != "" && !plainName(p.Model) {
			bad(field+".model", "%q: at most 64 printable characters", p.Model)
		}
	}
	for i := range c.Requests.LlamaLogs {
		l := c.Requests.LlamaLogs[i]
		field := fmt.Sprintf("requests.llama_logs[%d]", i)
		checkName(bad, field+".name", l.Name, names)
		if l.Path == "" {
			bad(field+".path", "is needed")
		}
	}
}

func (c *config) checkSources(bad badFunc) {
	if c.Requests.OTLP.HTTP != "" {
		checkListen(bad, "requests.otlp.http", c.Requests.OTLP.HTTP)
	}
	if c.Requests.OTLP.GRPC != "" {
		checkListen(bad, "requests.otlp.grpc", c.Requests.OTLP.GRPC)
	}
}

// isSelf reports whether upstream leads back to listen, as far as the two say:
// the same port, and the same address or one of this host. One request would
// open connections until no descriptor is left.
func isSelf(listen string, upstream *url.URL) bool {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" || port != upstream.Port() {
		return false
	}
	to := upstream.Hostname()
	if host == to {
		return true
	}
	from, there := hostAddr(host), hostAddr(to)
	return there.IsLoopback() && from.IsUnspecified() || there.IsUnspecified() && from.IsLoopback() ||
		there.IsUnspecified() && from.IsUnspecified() || there.IsLoopback() && from == there
}

// hostAddr is the address of a host without asking a resolver; other names
// have none.
func hostAddr(host string) netip.Addr {
	switch host {
	case "":
		return netip.IPv6Unspecified()
	case "localhost":
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

func checkUpstream(bad badFunc, field string, p *proxyConfig) {
	u, err := url.Parse(p.Upstream)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		bad(field, "%q is not http://host:port or https://host:port", p.Upstream)
		return
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			bad(field, "%q has no usable port: 1 to 65535", p.Upstream)
		}
	}
	if isSelf(p.Listen, u) {
		bad(field, "%s is this proxy itself: a request would go round in it", p.Upstream)
	}
}

// checkName guards a source's name: it becomes the label "source".
func checkName(bad badFunc, field, name string, used map[string]bool) {
	switch {
	case name == "":
		bad(field, "is needed: it becomes the label source")
	case used[name]:
		bad(field, "%q is used twice or reserved (push, otlp)", name)
	case !plainName(name):
		bad(field, "%q: at most 64 printable characters", name)
	}
	used[name] = true
}

func checkListen(bad badFunc, field, addr string) {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		bad(field, "%q is not host:port or :port", addr)
	} else if _, err := net.LookupPort("tcp", port); err != nil {
		bad(field, "%q has no usable port: 0 to 65535", addr)
	}
}

func plainName(s string) bool {
	return len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError })
}

// prefixLines puts the file in front of each joined problem.
func prefixLines(path string, err error) error {
	return errors.New(path + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+path+": "))
}
