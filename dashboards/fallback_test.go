package dashboards_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"grayfail/collector/legs"
	"grayfail/collector/rdma/join"
	"grayfail/detector"
	"grayfail/event"
	"grayfail/export"
)

// fallback is a coordinator with two legs on a device of two ports. Its engine
// looks at port 1 only, so that the leg of port 2 falls back to TCP.
//
// What is fixture: the readings of kernel and engine (sockets, ports, queue
// pairs, counters, requests, exchanges), since the kernel of the tests has no
// RDMA; lab/vm has the same with a real one. What is real: the join that
// concludes the transport and its reason, the detector, the metrics and their
// handler, and the Prometheus that scrapes it.
//
// Each scrape plays one second and one request more.
type fallback struct {
	mu       sync.Mutex
	metrics  *export.Metrics
	detector *detector.Detector
	judge    *join.Judge
	scrape   http.Handler
	nowNS    int64
	played   int
	down     bool // the leg of port 2 is on TCP
	legs     []event.Leg
	episodes map[int64]event.Episode // by start
}

const (
	fallbackAddr  = "127.0.0.1:10551"
	fallbackModel = "recorded"
	enginePID     = 4711
)

func newFallback() (*fallback, error) {
	registry := prometheus.NewRegistry()
	metrics, err := export.New(export.Options{Registerer: registry})
	if err != nil {
		return nil, err
	}
	f := &fallback{
		metrics: metrics, detector: detector.New(detector.DefaultConfig()), judge: join.New(join.Options{}),
		scrape: export.Handler(registry, zerolog.Nop()), nowNS: time.Now().UnixNano(),
		episodes: make(map[int64]event.Episode),
	}
	for port := 1; port <= 2; port++ {
		net := byte(port)
		f.legs = append(f.legs, event.Leg{
			Name: fmt.Sprintf("w%d", port), Local: netip.AddrFrom4([4]byte{10, 9, net, 1}),
			Peer: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, net, 2}), 50052), Device: fmt.Sprintf("roce%d", port),
			Expected: "auto", Process: "llama-server", PID: enginePID, Connections: 1, RTT: 80 * time.Microsecond, MinRTT: 50 * time.Microsecond,
			FirstSeenNS: f.nowNS,
		})
	}
	for range 15 {
		f.play()
	}
	f.down = true
	for range 8 {
		f.play()
	}
	return f, nil
}

func (f *fallback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.play()
	f.mu.Unlock()
	f.scrape.ServeHTTP(w, r)
}

// play lets one second pass with one request of 32 tokens in it.
func (f *fallback) play() {
	f.played++
	start, token := f.nowNS, 8*time.Millisecond
	if f.down {
		token = 25 * time.Millisecond
	}
	f.nowNS += int64(time.Second)
	f.transports()
	end := start + int64(10*time.Millisecond) + 32*int64(token)
	if f.down {
		for i := range 32 {
			f.exchange(start+int64(10*time.Millisecond)+int64(i)*int64(token), 18*time.Millisecond)
		}
	}
	f.request(event.Request{
		ID: fmt.Sprint("r", f.played), Source: "main", Model: fallbackModel, Outcome: event.OutcomeOK, Status: 200, Concurrency: 1,
		StartNS: start, FirstTokenNS: start + int64(10*time.Millisecond), EndNS: end,
		PromptTokens: 128, GeneratedTokens: 32, PrefillRate: 12_800, DecodeRate: 1 / token.Seconds(),
		HTTP: &event.HTTPStages{Upstream: "127.0.0.1:8080", Durations: map[event.HTTPStage]time.Duration{
			event.HTTPStageWrite: 50 * time.Microsecond, event.HTTPStageFirstByte: 10 * time.Millisecond, event.HTTPStageRead: 32 * token,
		}},
	})
	f.judged(f.detector.Advance(f.nowNS))
	f.publish()
}

func (f *fallback) exchange(sendNS int64, took time.Duration) {
	x := event.Exchange{
		Leg: "w2", SendNS: sendNS, Duration: took, FirstByte: took - time.Millisecond, Ack: 90 * time.Microsecond, Stall: 40 * time.Microsecond,
		RequestBytes: 9216, ReplyBytes: 128_000, RTT: f.legs[1].RTT, MinRTT: f.legs[1].MinRTT, Flow: f.flow(1),
	}
	f.legs[1].BytesAcked += x.RequestBytes
	f.legs[1].BytesReceived += x.ReplyBytes
	f.metrics.Exchange(&x)
	f.detector.Exchange(x)
}

func (f *fallback) request(r event.Request) {
	f.metrics.Request(r)
	f.metrics.HTTPStages(*r.HTTP)
	f.detector.Request(r)
}

func (f *fallback) flow(leg int) event.Flow {
	l := f.legs[leg]
	return event.Flow{Local: netip.AddrPortFrom(l.Local, 40_000+uint16(leg)), Peer: l.Peer, Socket: uint64(leg + 1), PID: enginePID, Comm: "llama-server"}
}

// transports asks the join what the legs run over.
func (f *fallback) transports() {
	f.judge.Reading(*f.reading())
	for i := range f.legs {
		leg := &f.legs[i]
		socket := event.TCPSocket{
			TimeNS: f.nowNS, Flow: f.flow(i), State: event.TCPEstablished, HasInfo: true, RTT: leg.RTT, MinRTT: leg.MinRTT,
			BytesAcked: 300, BytesReceived: 300, SinceSend: time.Hour, SinceReceive: time.Hour,
		}
		leg.Transport, leg.Reason = event.TransportIdle, ""
		if i == 1 && f.down {
			leg.Transport = event.TransportTCP
			socket.BytesAcked, socket.BytesReceived = leg.BytesAcked+1<<20, leg.BytesReceived+1<<20
			socket.SinceSend, socket.SinceReceive = time.Millisecond, time.Millisecond
			socket.Flow.Socket += 100 // the engine has connected anew
		}
		f.judge.Join(f.nowNS, legs.Facts{Sockets: []legs.SocketFacts{{
			TCPSocket: socket, Age: time.Minute, Settled: true, Payload: socket.BytesAcked + socket.BytesReceived,
		}}}, leg)
		f.detector.Leg(event.LegChange{
			TimeNS: f.nowNS - int64(time.Second), Leg: leg.Name, Transport: leg.Transport, Reason: leg.Reason, Device: leg.Device,
			RDMADevice: leg.RDMADevice, RDMAPort: leg.RDMAPort,
		})
	}
}

// reading of a device of two ports. The engine has a queue pair on port 1, and
// one on port 2 until it has connected anew.
func (f *fallback) reading() *event.RDMA {
	r := &event.RDMA{TimeNS: f.nowNS, QueuePairsNS: f.nowNS}
	for port := 1; port <= 2; port++ {
		leg := f.legs[port-1]
		r.Ports = append(r.Ports, event.RDMAPort{
			Device: "mlx4_0", Port: port, Netdev: leg.Device, LinkLayer: "Ethernet", Protocol: "roce", State: "ACTIVE", Active: true,
			RateBytesPerSecond: 5e9, GIDsRead: true, GIDs: []event.GID{{Index: 2, Addr: leg.Local, Type: "RoCE v2", Netdev: leg.Device}},
		})
		r.Counters = append(r.Counters, event.RDMACounter{Device: "mlx4_0", Port: port, Event: "rx_read_requests", Value: uint64(1000 + 50*f.played)})
		if port == 1 || !f.down {
			r.QueuePairs = append(r.QueuePairs, event.QueuePair{Device: "mlx4_0", Port: port, LQPN: uint32(100 + port), RQPN: 7, Type: "RC", State: "RTS", PID: enginePID})
		}
	}
	return r
}

func (f *fallback) judged(out detector.Output) {
	for _, r := range out.Rows {
		f.metrics.Row(r)
	}
	for _, e := range out.Opened {
		f.metrics.EpisodeOpened(e)
	}
	for _, e := range slices.Concat(out.Closed, f.detector.Episodes()) {
		f.episodes[e.StartNS] = e
	}
}

func (f *fallback) publish() {
	f.metrics.Publish(&event.Snapshot{
		TimeNS: f.nowNS, Legs: slices.Clone(f.legs), RDMA: f.reading(),
		Qdiscs: []event.Qdisc{{
			TimeNS: f.nowNS, Device: "roce2", Kind: "mq", Handle: "0:", Parent: "root", Packets: uint64(1000 * f.played), Bytes: uint64(1e6 * f.played),
		}},
		Baselines: f.detector.Baselines(), Episodes: slices.Collect(maps.Values(f.episodes)),
		Statuses: []event.Status{
			{Collector: "rdma", Availability: event.Up, Duration: time.Millisecond},
			{Collector: "tcp_events", Availability: event.Up, Duration: time.Millisecond},
		},
		InFlight:      []event.InFlight{{Source: "main", Model: fallbackModel, Requests: 1}},
		HostAddresses: []netip.Addr{f.legs[0].Local, f.legs[1].Local},
		ConfigReload:  event.ConfigReload{Successful: true, TimeNS: f.nowNS},
	})
}
