package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"grayfail/lab"
	"grayfail/lab/trial"
)

// Addresses inside the coordinator's namespace.
const (
	prometheusAddr   = "127.0.0.1:9090"
	alertmanagerAddr = "127.0.0.1:9093"
	webhookAddr      = "127.0.0.1:9099"
)

// job is what the rules in alerts/ expect the scrape job to be called.
const job = "grayfail"

const prometheusConfig = `global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [%q]
alerting:
  alertmanagers:
    - static_configs: [{targets: [%q]}]
scrape_configs:
  - job_name: %s
    static_configs: [{targets: [%q]}]
`

const alertmanagerConfig = `route:
  receiver: demo
  group_by: ['...']
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: demo
    webhook_configs: [{url: "http://%s/", send_resolved: true}]
`

// startMonitor starts Debian's Prometheus, with the project's own rules, and
// Alertmanager, which delivers to our webhook.
func startMonitor(ctx context.Context, c *lab.Cluster, rules string) error {
	if _, err := os.Stat(rules); err != nil {
		return fmt.Errorf("alert rules: %w", err)
	}
	file := func(name, content string) (string, error) {
		path := filepath.Join(c.RunDir, name)
		return path, os.WriteFile(path, []byte(content), 0o644)
	}
	amConfig, err := file("alertmanager.yml", fmt.Sprintf(alertmanagerConfig, webhookAddr))
	if err != nil {
		return err
	}
	promConfig, err := file("prometheus.yml", fmt.Sprintf(prometheusConfig, rules, alertmanagerAddr, job, trial.ExporterAddr))
	if err != nil {
		return err
	}
	for _, server := range []struct {
		cmd   lab.Command
		ready string
	}{
		{lab.Command{Name: "alertmanager", Argv: []string{
			"/usr/bin/prometheus-alertmanager", "--config.file=" + amConfig, "--storage.path=" + filepath.Join(c.RunDir, "alertmanager"),
			"--web.listen-address=" + alertmanagerAddr, "--cluster.listen-address=", // one instance, no gossip
		}}, "http://" + alertmanagerAddr + "/-/ready"},
		{lab.Command{Name: "prometheus", Argv: []string{
			"/usr/bin/prometheus", "--config.file=" + promConfig, "--storage.tsdb.path=" + filepath.Join(c.RunDir, "prometheus"),
			"--web.listen-address=" + prometheusAddr,
		}}, "http://" + prometheusAddr + "/-/ready"},
	} {
		p, err := c.Spawn(server.cmd)
		if err != nil {
			return fmt.Errorf("%w (Debian packages prometheus, prometheus-alertmanager)", err)
		}
		wait, cancel := context.WithTimeout(ctx, 30*time.Second)
		err = p.WaitFor(wait, "it was ready", func(ctx context.Context) error { return c.Get(ctx, server.ready) })
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}
