package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/rs/zerolog"
)

// serveCommand is the exporter: 0 after a clean stop, 1 when it could not
// start. Collectors that cannot run never stop it: they say why and the rest
// works.
func (p program) serveCommand(ctx context.Context, f serveFlags, stderr io.Writer) int {
	if p.tune != nil {
		p.tune()
	}
	log := newLogger(f, stderr)
	s, err := newServer(f, log)
	if err != nil {
		fmt.Fprintf(stderr, "grayfail_exporter: %v\n", err)
		return exitFail
	}
	s.rights = p.rights
	if err := s.serve(ctx); err != nil {
		log.Error().Err(err).Msg("stopped")
		return exitFail
	}
	return exitOK
}

func newLogger(f serveFlags, w io.Writer) zerolog.Logger {
	if f.logFormat == "console" {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.RFC3339, NoColor: true}
	}
	level, _ := zerolog.ParseLevel(f.logLevel) // the flag's enum allows known levels only
	return zerolog.New(zerolog.SyncWriter(w)).Level(level).With().Timestamp().Logger()
}

// closeTime is how long scrapes and pushes may take to end after a stop.
const closeTime = 2 * time.Second

// serve runs until ctx ends or a listener fails.
func (s *server) serve(ctx context.Context) error {
	listeners, err := s.listen()
	if err != nil {
		return err
	}
	err = s.proxies.apply(s.config().Requests.Proxies)
	if err == nil {
		err = s.otlp.apply(s.config().Requests.OTLP)
	}
	if err != nil {
		s.proxies.close()
		for _, l := range listeners {
			_ = l.Close()
		}
		return err
	}
	s.logs.apply(s.config().Requests.LlamaLogs)
	s.giveUp()
	httpServer := newHTTPServer(s.mux(), webLimits)
	httpServer.RegisterOnShutdown(s.pipe.api.Close)                                         // open pages would hold it up
	httpServer.ErrorLog = slog.NewLogLogger(zerolog.NewSlogHandler(s.log), slog.LevelDebug) // clients cause them
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	var sampling, judging sync.WaitGroup
	sampling.Go(func() { s.sampler.run(work) })
	sampling.Go(func() { s.publisher.run(work) })
	sampling.Go(func() { s.state.run(work) })
	judge, stopJudge := context.WithCancel(context.WithoutCancel(ctx))
	judging.Go(func() { s.pipe.run(judge) })
	stopHangup := s.onHangup()

	failed := make(chan error, 1)
	go func() {
		logger := slog.New(zerolog.NewSlogHandler(s.log))
		if *s.flags.web.WebSystemdSocket {
			failed <- web.ListenAndServe(httpServer, s.flags.web, logger)
			return
		}
		failed <- web.ServeMultiple(listeners, httpServer, s.flags.web, logger)
	}()
	s.listening.Store(true)
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.log.Info().Msg("stopping")
	}
	s.listening.Store(false) // not ready: whoever balances load looks elsewhere

	// Sources first, pushes among them, then the judge that empties their
	// queues: what was accepted is judged and recorded.
	stopHangup()
	var sources sync.WaitGroup // side by side: each may take some seconds
	for _, end := range []func(){s.proxies.close, s.otlp.close, s.logs.close} {
		sources.Go(end)
	}
	sources.Wait()
	shutdown, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if httpServer.Shutdown(shutdown) != nil {
		_ = httpServer.Close()
	}
	stopWork()
	sampling.Wait()
	stopJudge()
	judging.Wait()
	s.state.close() // what the judge has just said too
	closing := errors.Join(s.probes.Close(), s.rec.close(), s.sampler.close())
	if err == nil {
		err = closing
	}
	return err
}

func (s *server) listen() ([]net.Listener, error) {
	if err := web.Validate(*s.flags.web.WebConfigFile); err != nil {
		return nil, fmt.Errorf("--web.config.file %s: %w", *s.flags.web.WebConfigFile, err)
	}
	if *s.flags.web.WebSystemdSocket {
		return nil, nil // the toolkit takes the sockets systemd hands over
	}
	var all []net.Listener
	for _, addr := range *s.flags.web.WebListenAddresses {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			for _, l := range all {
				_ = l.Close()
			}
			return nil, fmt.Errorf("--web.listen-address: %w", err)
		}
		all = append(all, webLimits.listener(l))
	}
	return all, nil
}

func (s *server) mux() http.Handler {
	return newMux(webParts{
		log: s.log, registry: s.registry, api: s.pipe.api, push: s.push,
		pushEnabled: func() bool { return s.config().Requests.Push.Enabled },
		ready:       func() bool { return s.listening.Load() && s.status.ready() },
		reload:      s.reload, adopt: s.pipe.adopt, pprof: s.flags.pprof,
	})
}

// onHangup reloads on SIGHUP until the returned function is called.
func (s *server) onHangup() (stop func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-hup:
				_ = s.reload() // logged and counted there
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(hup); close(done) }
}

func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return reg
}
