package trial

import (
	"fmt"
	"time"

	"grayfail/lab"
)

// Scenario is a named fault with what it needs of the cluster.
type Scenario struct {
	Name string
	// Truth says what is true under it: a leg, "both legs", "local"
	// or "nothing".
	Truth  string
	Faults []func(*lab.Cluster) (lab.Injector, error)
	// Concurrency of baseline and fault alike; 0 means 1.
	Concurrency int
	Relay       bool // the cluster needs its packet relay
}

// Condition of the scenario.
func (s Scenario) Condition() Condition {
	return Condition{Name: s.Name, Faults: s.Faults, Concurrency: s.Concurrency}
}

func loss(leg string, d lab.Direction, percent float64) func(*lab.Cluster) (lab.Injector, error) {
	return func(c *lab.Cluster) (lab.Injector, error) { return c.NewLoss(leg, d, percent) }
}

func rate(leg string, d lab.Direction, bits uint64) func(*lab.Cluster) (lab.Injector, error) {
	return func(c *lab.Cluster) (lab.Injector, error) { return c.NewRateLimit(leg, d, bits) }
}

func slowed(leg string, percent float64, period time.Duration) func(*lab.Cluster) (lab.Injector, error) {
	return func(c *lab.Cluster) (lab.Injector, error) { return c.NewPause(leg, percent, period) }
}

func impaired(leg string, d lab.Direction, i lab.Impairment) func(*lab.Cluster) (lab.Injector, error) {
	return func(c *lab.Cluster) (lab.Injector, error) { return c.NewImpair(leg, d, i) }
}

type faults = []func(*lab.Cluster) (lab.Injector, error)

// Scenarios lists every fault that can be recorded.
func Scenarios() []Scenario {
	all := []Scenario{
		{Name: "nothing", Truth: "nothing"},
		{Name: "nothing_2_parallel", Truth: "nothing", Concurrency: 2},
	}
	short := map[string]string{lab.LegA: "a", lab.LegB: "b"}
	for _, leg := range []string{lab.LegA, lab.LegB} {
		x := short[leg]
		for _, percent := range []float64{1, 3, 5, 10} {
			all = append(all, Scenario{Name: fmt.Sprintf("loss%g_replies_of_%s", percent, x), Truth: leg, Faults: faults{loss(leg, lab.Replies, percent)}})
		}
		all = append(all,
			Scenario{Name: "loss5_requests_to_" + x, Truth: leg, Faults: faults{loss(leg, lab.Requests, 5)}},
			Scenario{Name: "loss10_requests_to_" + x, Truth: leg, Faults: faults{loss(leg, lab.Requests, 10)}},
			Scenario{Name: "rate_limit_replies_of_" + x, Truth: leg, Faults: faults{rate(leg, lab.Replies, map[string]uint64{lab.LegA: 1e6, lab.LegB: 20e6}[leg])}},
			Scenario{Name: "rate_limit_requests_to_" + x, Truth: leg, Faults: faults{rate(leg, lab.Requests, 2e6)}},
			Scenario{Name: "slow_host_" + x, Truth: leg, Faults: faults{slowed(leg, 15, 40*time.Millisecond)}},
			Scenario{Name: "slow_host_" + x + "_fine", Truth: leg, Faults: faults{slowed(leg, 15, 10*time.Millisecond)}},
			Scenario{Name: "slow_host_" + x + "_coarse", Truth: leg, Faults: faults{slowed(leg, 20, 250*time.Millisecond)}},
			Scenario{Name: "loss5_replies_of_" + x + "_2_parallel", Truth: leg, Faults: faults{loss(leg, lab.Replies, 5)}, Concurrency: 2},
			Scenario{Name: "delay10ms_replies_of_" + x, Truth: leg, Relay: true, Faults: faults{impaired(leg, lab.Replies, lab.Delay(10*time.Millisecond))}},
			Scenario{Name: "delay50ms_replies_of_" + x, Truth: leg, Relay: true, Faults: faults{impaired(leg, lab.Replies, lab.Delay(50*time.Millisecond))}},
			Scenario{Name: "delay50ms_requests_to_" + x, Truth: leg, Relay: true, Faults: faults{impaired(leg, lab.Requests, lab.Delay(50*time.Millisecond))}},
			Scenario{Name: "delay50ms_both_ways_" + x, Truth: leg, Relay: true, Faults: faults{
				impaired(leg, lab.Replies, lab.Delay(25*time.Millisecond)), impaired(leg, lab.Requests, lab.Delay(25*time.Millisecond))}},
			Scenario{Name: "jitter20ms_replies_of_" + x, Truth: leg, Relay: true, Faults: faults{impaired(leg, lab.Replies, lab.Impairment{Delay: 20 * time.Millisecond, Jitter: 15 * time.Millisecond})}},
			Scenario{Name: "relay_loss5_replies_of_" + x, Truth: leg, Relay: true, Faults: faults{impaired(leg, lab.Replies, lab.Impairment{Loss: 5})}},
			Scenario{Name: "delay10ms_and_loss2_replies_of_" + x, Truth: leg, Relay: true, Faults: faults{impaired(leg, lab.Replies, lab.Impairment{Delay: 10 * time.Millisecond, Loss: 2})}},
			Scenario{Name: "duplicate20_replies_of_" + x, Truth: "nothing", Relay: true, Faults: faults{impaired(leg, lab.Replies, lab.Impairment{Duplicate: 20})}},
			Scenario{Name: "reorder5_replies_of_" + x, Truth: leg, Relay: true, Faults: faults{impaired(leg, lab.Replies, lab.Impairment{Delay: 10 * time.Millisecond, Reorder: 5})}},
		)
	}
	return append(all,
		Scenario{Name: "slow_coordinator", Truth: "local", Faults: faults{slowed("", 15, 40*time.Millisecond)}},
		Scenario{Name: "slow_coordinator_fine", Truth: "local", Faults: faults{slowed("", 15, 10*time.Millisecond)}},
		Scenario{Name: "slow_coordinator_coarse", Truth: "local", Faults: faults{slowed("", 20, 250*time.Millisecond)}},
		Scenario{Name: "loss5_replies_of_both", Truth: "both legs", Faults: faults{loss(lab.LegA, lab.Replies, 5), loss(lab.LegB, lab.Replies, 5)}},
		Scenario{Name: "delay50ms_replies_of_both", Truth: "both legs", Relay: true, Faults: faults{
			impaired(lab.LegA, lab.Replies, lab.Delay(50*time.Millisecond)), impaired(lab.LegB, lab.Replies, lab.Delay(50*time.Millisecond))}},
		Scenario{Name: "slow_hosts_both", Truth: "both legs", Faults: faults{slowed(lab.LegA, 20, 20*time.Millisecond), slowed(lab.LegB, 20, 20*time.Millisecond)}},
		// A fault that bites beside one that hardly does: the name is the first one's.
		Scenario{Name: "loss5_replies_of_b_loss1_of_a", Truth: lab.LegB, Faults: faults{loss(lab.LegB, lab.Replies, 5), loss(lab.LegA, lab.Replies, 1)}},
	)
}
