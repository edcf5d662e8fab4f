package measure

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"grayfail/lab"
	"grayfail/lab/cost"
)

// shape is how the qdiscs lie.
type shape struct {
	name  string
	sizes []int // the contract is stated for 1,000
	make  func(context.Context, lab.Namespace, int) error
}

// 5,000 devices are left out: node_exporter did not answer within 30 s there.
var shapes = []shape{
	{"on as many devices", []int{10, 100, 1000}, onDevices},
	{"on ten devices", []int{10, 100, 1000, 5000}, inClasses},
}

// ours names our row and column.
const ours = "grayfail_exporter"

// Qdisc compares the qdisc collectors over the same qdiscs.
func Qdisc(ctx context.Context, o Options) (cost.Section, error) {
	s := cost.Section{ID: "qdisc", Title: "Reading qdiscs, beside node_exporter", Method: qdiscMethod}
	return s, timed(ctx, &s, func() error {
		for _, shape := range shapes {
			if err := qdiscShape(ctx, o, &s, shape); err != nil {
				return fmt.Errorf("qdiscs %s: %w", shape.name, err)
			}
		}
		return nil
	})
}

func qdiscShape(ctx context.Context, o Options, s *cost.Section, shape shape) error {
	table := cost.Table{
		Title:  "Qdiscs " + shape.name,
		Header: []string{"qdiscs", "program", "reading them, by the program's own metric, median", "scrape, median", "scrape, p99", "CPU a round", "CPU, ratio to ours", "rounds", "answer, gzip", "resident memory"},
	}
	var curves []cost.Curve
	for _, n := range shape.sizes {
		results, err := qdiscSize(ctx, o, shape, n)
		if err != nil {
			return fmt.Errorf("%d: %w", n, err)
		}
		for i, r := range results {
			table.Rows = append(table.Rows, r.row(n, results[0]))
			if len(curves) <= i {
				curves = append(curves, cost.Curve{Name: r.name + ", qdiscs " + shape.name, Size: "qdiscs", Unit: "ms to read", Reference: i > 0})
			}
			curves[i].Points = append(curves[i].Points, cost.Point{X: float64(n), Y: millis(r.reading)})
		}
		if n == 1000 && len(results) > 1 {
			s.Targets = append(s.Targets, halfOfTheOther(shape.name, results))
		}
	}
	s.Tables, s.Curves = append(s.Tables, table), append(s.Curves, curves...)
	return nil
}

// halfOfTheOther holds our reading against every other one.
func halfOfTheOther(shape string, results []qdiscResult) cost.Target {
	our := results[0].reading
	t := cost.Target{What: "reading 1,000 qdiscs " + shape, Aim: "at most half of node_exporter's time", Met: true}
	var got []string
	for _, r := range results[1:] {
		ratio := our.Seconds() / r.reading.Seconds()
		t.Met = t.Met && ratio <= 0.5
		got = append(got, fmt.Sprintf("%.2g of %s's", ratio, r.name))
	}
	t.Got = fmt.Sprintf("%s; ours: %s", strings.Join(got, ", "), ms(our))
	if !t.Met {
		t.Why = "the newest node_exporter no longer asks for each device by itself; of our time nearly half is the kernel's own dump, which both wait for (`BenchmarkCollect1000`), and we show every qdisc where it shows the roots"
	}
	return t
}

const qdiscMethod = "One namespace with n qdiscs: veth devices with a tbf each as their root, or ten devices with an htb and its leaves. node_exporter reads all and shows the root qdiscs only; ours shows all. One program after the other is scraped, a round a second, or as long as its answer takes. node_exporter has its qdisc collector and no other, and reads when it is scraped; ours runs whole (legs, sockets, RDMA, BPF) and reads every second whether scraped or not, so its CPU time has everything in it."

// qdiscResult is one program at one size.
type qdiscResult struct {
	name            string
	reading         time.Duration
	median, p99     time.Duration
	cpu             time.Duration // a round
	rounds          int
	bytes, resident int64
}

func (r *qdiscResult) row(n int, our qdiscResult) []string {
	return []string{
		strconv.Itoa(n), r.name, ms(r.reading), ms(r.median), ms(r.p99), ms(r.cpu), fmt.Sprintf("%.2f", r.cpu.Seconds()/our.cpu.Seconds()), strconv.Itoa(r.rounds),
		fmt.Sprintf("%d kB", r.bytes/1000), fmt.Sprintf("%d MB", r.resident>>20),
	}
}

func qdiscSize(ctx context.Context, o Options, shape shape, n int) (_ []qdiscResult, err error) {
	c, err := room(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := shape.make(ctx, c.Coordinator, n); err != nil {
		return nil, err
	}
	our, err := exporter(ctx, c, o, 0, "{}")
	if err != nil {
		return nil, err
	}
	subjects := []*subject{our}
	for i, node := range o.NodeExporters {
		s, err := spawn(ctx, c, i+1, node.Name, node.Path, "--collector.disable-defaults", "--collector.qdisc", "--web.disable-exporter-metrics")
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	return compareQdiscs(ctx, c, o, subjects)
}

// onDevices makes n devices with a root qdisc each.
func onDevices(ctx context.Context, ns lab.Namespace, n int) error {
	qdiscs := ""
	for i := range n / 2 {
		for _, dev := range []string{"p", "r"} {
			qdiscs += fmt.Sprintf("qdisc add dev %s%d root tbf rate 1mbit burst 10k limit 10k\n", dev, i)
		}
	}
	return batch(ctx, ns, n/2, qdiscs)
}

// inClasses makes ten devices, each with an htb and a leaf for each class.
func inClasses(ctx context.Context, ns lab.Namespace, n int) error {
	var b strings.Builder
	for i := range 10 {
		dev := fmt.Sprintf("%c%d", "pr"[i%2], i/2)
		fmt.Fprintf(&b, "qdisc add dev %s root handle 1: htb\n", dev)
		for class := 1; class < n/10; class++ {
			fmt.Fprintf(&b, "class add dev %s parent 1: classid 1:%x htb rate 1mbit\nqdisc add dev %s parent 1:%x pfifo limit 10\n", dev, class, dev, class)
		}
	}
	return batch(ctx, ns, 5, b.String())
}

// batch makes pairs of veth devices, p0 and r0 on, and hands text to tc.
func batch(ctx context.Context, ns lab.Namespace, pairs int, text string) error {
	var links strings.Builder
	for i := range pairs {
		fmt.Fprintf(&links, "link add p%d type veth peer name r%d\n", i, i)
	}
	if _, err := ns.Script(ctx, links.String(), "ip", "-batch", "-"); err != nil {
		return err
	}
	_, err := ns.Script(ctx, text, "tc", "-batch", "-")
	return err
}

func compareQdiscs(ctx context.Context, c *lab.Cluster, o Options, subjects []*subject) (all []qdiscResult, err error) {
	for _, s := range subjects {
		r, err := readQdiscs(ctx, c, o, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// patience with one program: past it a few rounds must do.
const (
	patience  = 30 * time.Second
	fewRounds = 3
)

// readQdiscs scrapes one program once a second.
func readQdiscs(ctx context.Context, c *lab.Cluster, o Options, s *subject) (r qdiscResult, err error) {
	r.name = s.name
	err = s.WaitFor(ctx, "it read qdiscs", func(ctx context.Context) error {
		body, err := c.Fetch(ctx, s.url)
		if err == nil {
			_, err = readingTime(s.name, body)
		}
		return err
	})
	if err != nil {
		return r, err
	}
	before, err := cpuTime(s.PID())
	if err != nil {
		return r, err
	}
	var took, readings []time.Duration
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for start := time.Now(); len(took) < o.Rounds && (len(took) < fewRounds || time.Since(start) < patience); {
		a, err := scrape(ctx, c.HTTP(), s.url, false)
		if err != nil {
			return r, err
		}
		reading, err := readingTime(s.name, a.body)
		if err != nil {
			return r, err
		}
		took, readings = append(took, a.took), append(readings, reading)
		r.bytes = int64(len(a.body))
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-tick.C:
		}
	}
	after, err := cpuTime(s.PID())
	if err != nil {
		return r, err
	}
	r.cpu = (after - before) / time.Duration(len(took))
	r.rounds, r.reading, r.median, r.p99 = len(took), quantile(readings, 0.5), quantile(took, 0.5), quantile(took, 0.99)
	r.resident, err = residentBytes(s.PID())
	return r, err
}

// readingTime is what the program says its qdisc collector last took.
func readingTime(program string, body []byte) (time.Duration, error) {
	name := `node_scrape_collector_duration_seconds{collector="qdisc"}`
	if program == ours {
		name = `grayfail_collector_duration_seconds{collector="qdisc"}`
	}
	v, err := sample(body, name)
	return time.Duration(v * 1e9), err
}
