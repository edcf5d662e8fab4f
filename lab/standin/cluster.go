package standin

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Leg is one worker as the coordinator uses it.
type Leg struct {
	Address                  string
	RequestBytes, ReplyBytes int // of the exchange of one token
}

// shares of a token's time: the workers take it in turns, the rest is the
// coordinator's own.
const (
	workersShare = 0.8
	modelBytes   = 4 << 20 // uploaded to each worker at the start
	probes       = 3       // short connections to each worker at the start
	calibrations = 31      // exchanges to learn what the wire itself costs
)

// Coordinator holds one long-lived connection to each worker.
type Coordinator struct {
	TokenTime            time.Duration
	PromptTokensPerToken int
	Legs                 []Leg

	mu    sync.Mutex // one token at a time, whoever asks: two requests get half each
	conns []net.Conn
	wire  []time.Duration // what an exchange of each leg costs without any work
	pace  pacer
}

// Connect does what llama-server does at its start: some short connections
// that ask for the device, then the connection that stays, and the model.
func (c *Coordinator) Connect(ctx context.Context) error {
	var d net.Dialer
	for _, leg := range c.Legs {
		for range probes {
			if err := probe(ctx, leg.Address); err != nil {
				return fmt.Errorf("worker %s: %w", leg.Address, err)
			}
		}
		conn, err := d.DialContext(ctx, "tcp", leg.Address)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
		if err := writeRequest(conn, cmdSetTensor, make([]byte, modelBytes)); err != nil {
			return fmt.Errorf("worker %s: %w", leg.Address, err)
		}
		wire, err := calibrate(conn, leg)
		if err != nil {
			return fmt.Errorf("worker %s: %w", leg.Address, err)
		}
		c.wire = append(c.wire, wire)
	}
	return nil
}

// calibrate gives the median duration of an exchange without work. It is taken
// off the worker's time, so that a token without fault takes TokenTime; what a
// fault adds later comes on top.
func calibrate(conn net.Conn, leg Leg) (time.Duration, error) {
	var took []time.Duration
	for range calibrations {
		start := time.Now()
		if err := compute(conn, leg.RequestBytes, 0, leg.ReplyBytes); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[calibrations/2], nil
}

func probe(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, cmd := range []byte{cmdHello, cmdDevice} {
		if err := writeRequest(conn, cmd, nil); err != nil {
			return err
		}
		if _, err := readReply(conn); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the connections.
func (c *Coordinator) Close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

// Token makes one token: one exchange with each worker in turn, then its own
// share.
func (c *Coordinator) Token() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	each := time.Duration(float64(c.TokenTime) * workersShare / float64(len(c.Legs)))
	for i, leg := range c.Legs {
		if err := compute(c.conns[i], leg.RequestBytes, max(0, each-c.wire[i]), leg.ReplyBytes); err != nil {
			return fmt.Errorf("worker %s: %w", leg.Address, err)
		}
	}
	c.pace.work(c.TokenTime - each*time.Duration(len(c.Legs)))
	return nil
}

// Prompt computes n prompt tokens; it makes the first token as well.
func (c *Coordinator) Prompt(n int) error {
	for done := 0; done < max(1, n); done += c.PromptTokensPerToken {
		if err := c.Token(); err != nil {
			return err
		}
	}
	return nil
}
