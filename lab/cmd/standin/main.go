// Command standin runs one half of the lab's stand-in engine (package
// lab/standin): a worker, or the coordinator with its HTTP server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"grayfail/lab/standin"
)

// exitLostWorker is 128 + SIGABRT: what llama-server ends with.
const exitLostWorker = 134

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

func run(ctx context.Context, args []string, log io.Writer) int {
	app := kingpin.New("standin", "A stand-in for an inference engine: not an engine.").Terminate(nil)
	worker := app.Command("worker", "Serve the traffic of an RPC worker.")
	workerListen := worker.Flag("listen", "Address to listen on.").Required().String()
	server := app.Command("server", "Answer requests, over workers.")
	listen := server.Flag("listen", "HTTP address to listen on.").Required().String()
	slots := server.Flag("slots", "Requests served at once.").Default("4").Int()
	tokenTime := server.Flag("token-time", "Time to make one token.").Default("5ms").Duration()
	perToken := server.Flag("prompt-tokens", "Prompt tokens computed in one token time.").Default("8").Int()
	legs := server.Flag("leg", "A worker as ADDRESS,REQUEST_BYTES,REPLY_BYTES; repeatable.").Required().Strings()

	var err error
	switch command, parseErr := app.Parse(args); {
	case parseErr != nil:
		fmt.Fprintln(log, "standin:", parseErr)
		return 2
	case command == worker.FullCommand():
		err = runWorker(ctx, *workerListen, log)
	default:
		c := &standin.Coordinator{TokenTime: *tokenTime, PromptTokensPerToken: *perToken}
		if c.Legs, err = parseLegs(*legs); err == nil {
			err = runServer(ctx, c, *listen, *slots, log)
		}
	}
	var lost lostWorker
	switch {
	case errors.As(err, &lost):
		fmt.Fprintln(log, "standin:", err)
		return exitLostWorker
	case err != nil:
		fmt.Fprintln(log, "standin:", err)
		return 1
	}
	return 0
}

func runWorker(ctx context.Context, address string, log io.Writer) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return (&standin.Worker{Log: log}).Serve(ctx, l)
}

type lostWorker struct{ err error }

func (l lostWorker) Error() string { return "lost a worker: " + l.err.Error() }
func (l lostWorker) Unwrap() error { return l.err }

func runServer(ctx context.Context, c *standin.Coordinator, address string, slots int, log io.Writer) error {
	defer c.Close()
	if err := c.Connect(ctx); err != nil {
		return err
	}
	s := standin.NewServer(c, slots)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "%s server: not an inference engine; listening on %s, %v a token\n", standin.Name, l.Addr(), c.TokenTime)
	h := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	defer h.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	case err := <-s.Failed():
		// The answer that failed is still on its way out.
		bye, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = h.Shutdown(bye)
		return lostWorker{err}
	}
}

func parseLegs(specs []string) ([]standin.Leg, error) {
	var out []standin.Leg
	for _, spec := range specs {
		f := strings.Split(spec, ",")
		if len(f) != 3 {
			return nil, fmt.Errorf("--leg %q: want ADDRESS,REQUEST_BYTES,REPLY_BYTES", spec)
		}
		request, err1 := strconv.Atoi(f[1])
		reply, err2 := strconv.Atoi(f[2])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("--leg %q: %w", spec, err)
		}
		out = append(out, standin.Leg{Address: f[0], RequestBytes: request, ReplyBytes: reply})
	}
	return out, nil
}
