package lab

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Injector is one fault that can be turned on and off.
type Injector interface {
	fmt.Stringer
	// Apply turns the fault on.
	Apply(ctx context.Context) error
	// Acted says what the fault has done since Apply, as a counter of the kernel
	// or of the injector shows it. ErrDidNotAct means that nothing moved: what
	// was measured under it is not valid.
	Acted() (Evidence, error)
	// Clear turns it off. Clearing what is not applied is no error.
	Clear() error
}

// Evidence that a fault acted: Count of What, out of Total where that is known.
type Evidence struct {
	What         string
	Count, Total uint64
}

func (e Evidence) String() string {
	if e.Total == 0 {
		return fmt.Sprintf("%d %s", e.Count, e.What)
	}
	return fmt.Sprintf("%d of %d %s (%.2f%%)", e.Count, e.Total, e.What, 100*float64(e.Count)/float64(e.Total))
}

// ErrDidNotAct is wrapped by Acted when nothing moved.
var ErrDidNotAct = errors.New("the fault did not act")

// evidence turns a counter into an answer for Acted.
func evidence(in Injector, e Evidence) (Evidence, error) {
	if e.Count == 0 {
		return e, fmt.Errorf("%s: %s: %w", in, e, ErrDidNotAct)
	}
	return e, nil
}

// Direction of the traffic a fault acts on, seen from the coordinator.
type Direction string

const (
	Replies  Direction = "replies"  // worker to coordinator
	Requests Direction = "requests" // coordinator to worker
)

// Inject applies a fault and makes sure that Close clears it.
func (c *Cluster) Inject(ctx context.Context, in Injector) error {
	c.mu.Lock()
	c.injectors = append(c.injectors, in)
	c.mu.Unlock()
	if err := in.Apply(ctx); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", in, err), in.Clear())
	}
	return nil
}

// Eject clears a fault, after asking whether it acted.
func (c *Cluster) Eject(in Injector) (Evidence, error) {
	e, err := in.Acted()
	return e, errors.Join(err, in.Clear())
}

// clearTimeout bounds the commands that clear a fault: they run when the
// caller's context has ended already.
const clearTimeout = 10 * time.Second

func clearContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), clearTimeout)
}
