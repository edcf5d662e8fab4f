package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	"grayfail/lab"
	"grayfail/lab/monitor"
	"grayfail/lab/trial"
)

// keep leaves everything running until ctx ends, with a request every second,
// and makes it reachable from the host's loopback.
func keep(ctx context.Context, c *lab.Cluster, e *trial.Exporter, out io.Writer) error {
	fmt.Fprintln(out, "\nKEEP: everything goes on running, one request a second; Ctrl-C ends and removes it")
	for _, f := range []struct{ what, host, inside string }{
		{"exporter", "127.0.0.1:10550", trial.ExporterAddr},
		{"Prometheus", "127.0.0.1:9090", monitor.PrometheusAddr},
		{"Alertmanager", "127.0.0.1:9093", monitor.AlertmanagerAddr},
		{"engine, through the exporter's proxy", fmt.Sprintf("127.0.0.1:%d", lab.ProxyPort), fmt.Sprintf("127.0.0.1:%d", lab.ProxyPort)},
	} {
		addr, err := c.Forward(f.host, f.inside)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  http://%s/  %s\n", addr, f.what)
	}
	fmt.Fprintf(out, "break it yourself: ip netns exec %s tc qdisc add dev eth0 root tbf rate 20mbit burst 64k limit 1m   (del: mend it)\n", c.Links[1].Worker)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.Exited():
			return fmt.Errorf("the exporter ended\n%s", e.Tail(10))
		case <-tick.C:
			c.Request(ctx, lab.RequestOptions{URL: e.ProxyURL()})
		}
	}
}
