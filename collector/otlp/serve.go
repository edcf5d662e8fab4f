package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
)

// stopTime is how long exports under way may take after a stop.
const stopTime = 2 * time.Second

// Listen opens the listeners; Serve does it where that has not been done.
func (r *Receiver) Listen() (err error) {
	open := func(address string) (net.Listener, error) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, err
		}
		return netutil.LimitListener(l, maxConns), nil
	}
	if r.config.HTTP != "" && r.httpListener == nil {
		if r.httpListener, err = open(r.config.HTTP); err != nil {
			return fmt.Errorf("otlp http: %w", err)
		}
	}
	if r.config.GRPC != "" && r.grpcListener == nil {
		if r.grpcListener, err = open(r.config.GRPC); err != nil {
			if r.httpListener != nil {
				_ = r.httpListener.Close()
				r.httpListener = nil
			}
			return fmt.Errorf("otlp grpc: %w", err)
		}
	}
	return nil
}

// Addrs are the addresses listened on; nil for none.
func (r *Receiver) Addrs() (http, grpc net.Addr) {
	if r.httpListener != nil {
		http = r.httpListener.Addr()
	}
	if r.grpcListener != nil {
		grpc = r.grpcListener.Addr()
	}
	return http, grpc
}

// Serve takes exports until ctx ends, and nil is returned, or a listener
// fails. Exports under way then have two seconds.
func (r *Receiver) Serve(ctx context.Context) error {
	if err := r.Listen(); err != nil {
		return err
	}
	failed := make(chan error, 2)
	var web *http.Server
	var rpc *grpc.Server
	var serving sync.WaitGroup
	if r.httpListener != nil {
		web = r.newHTTP()
		serving.Go(func() {
			if err := web.Serve(r.tls(r.httpListener)); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("otlp http: %w", err)
			}
		})
	}
	if r.grpcListener != nil {
		rpc = r.newGRPC()
		serving.Go(func() {
			if err := rpc.Serve(r.grpcListener); err != nil {
				failed <- fmt.Errorf("otlp grpc: %w", err)
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop(web, rpc)
	serving.Wait()
	return err
}

func (r *Receiver) newHTTP() *http.Server {
	return &http.Server{
		Handler: r.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
}

func (r *Receiver) tls(l net.Listener) net.Listener {
	if r.config.TLS == nil {
		return l
	}
	config := r.config.TLS.Clone()
	config.NextProtos = []string{"http/1.1"}
	return tls.NewListener(l, config)
}

// stop ends both servers side by side.
func stop(web *http.Server, rpc *grpc.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var stopping sync.WaitGroup
	if web != nil {
		stopping.Go(func() {
			if web.Shutdown(ctx) != nil {
				_ = web.Close()
			}
		})
	}
	if rpc != nil {
		stopping.Go(func() {
			defer context.AfterFunc(ctx, rpc.Stop)()
			rpc.GracefulStop()
		})
	}
	stopping.Wait()
}
