// Package monitor runs Debian's Prometheus and Alertmanager beside a lab
// cluster.
//
// In: a cluster on which an exporter listens at trial.ExporterAddr, a file of
// rules. Out: what Prometheus answers, and the alerts as Alertmanager delivers
// them.
package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"grayfail/lab"
	"grayfail/lab/trial"
)

// Addresses inside the coordinator's namespace.
const (
	PrometheusAddr   = "127.0.0.1:9090"
	AlertmanagerAddr = "127.0.0.1:9093"
	webhookAddr      = "127.0.0.1:9099"
)

// Job is what the rules in alerts/ expect the scrape job to be called.
const Job = "grayfail"

// Monitor is a running Prometheus with an Alertmanager.
type Monitor struct {
	Inbox   *Inbox
	cluster *lab.Cluster
}

const prometheusConfig = `global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [%q]
alerting:
  alertmanagers:
    - static_configs: [{targets: [%q]}]
scrape_configs:
  - job_name: %s
    static_configs: [{targets: [%s]}]
`

const alertmanagerConfig = `route:
  receiver: demo
  group_by: ['...']
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 5s # the text of an alert that goes on firing is brought up to date
receivers:
  - name: demo
    webhook_configs: [{url: "http://%s/", send_resolved: true}]
`

// Start starts Prometheus, with the rules of a file, and Alertmanager, which
// delivers to the Inbox. It scrapes the coordinator's exporter, and others by
// their addresses. The cluster ends the two servers; Close ends the Inbox.
func Start(ctx context.Context, c *lab.Cluster, rules string, others ...string) (m *Monitor, err error) {
	if _, err := os.Stat(rules); err != nil {
		return nil, fmt.Errorf("alert rules: %w", err)
	}
	hook, err := c.Coordinator.Listen(webhookAddr)
	if err != nil {
		return nil, err
	}
	m = &Monitor{Inbox: newInbox(hook), cluster: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	return m, m.start(ctx, rules, append([]string{trial.ExporterAddr}, others...))
}

// Close ends the Inbox.
func (m *Monitor) Close() error { return m.Inbox.close() }

func (m *Monitor) start(ctx context.Context, rules string, targets []string) error {
	c := m.cluster
	file := func(name, content string) (string, error) {
		path := filepath.Join(c.RunDir, name)
		return path, os.WriteFile(path, []byte(content), 0o644)
	}
	amConfig, err := file("alertmanager.yml", fmt.Sprintf(alertmanagerConfig, webhookAddr))
	if err != nil {
		return err
	}
	promConfig, err := file("prometheus.yml", fmt.Sprintf(prometheusConfig, rules, AlertmanagerAddr, Job, `"`+strings.Join(targets, `", "`)+`"`))
	if err != nil {
		return err
	}
	for _, server := range []struct {
		cmd   lab.Command
		ready string
	}{
		{lab.Command{Name: "alertmanager", Argv: []string{
			"/usr/bin/prometheus-alertmanager", "--config.file=" + amConfig, "--storage.path=" + filepath.Join(c.RunDir, "alertmanager"),
			"--web.listen-address=" + AlertmanagerAddr, "--cluster.listen-address=", // one instance, no gossip
		}}, "http://" + AlertmanagerAddr + "/-/ready"},
		{lab.Command{Name: "prometheus", Argv: []string{
			"/usr/bin/prometheus", "--config.file=" + promConfig, "--storage.tsdb.path=" + filepath.Join(c.RunDir, "prometheus"),
			"--web.listen-address=" + PrometheusAddr,
		}}, "http://" + PrometheusAddr + "/-/ready"},
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

// Series is one element of an instant vector.
type Series struct {
	Metric map[string]string `json:"metric"`
	// Value is a Unix time and the value as text.
	Value [2]any `json:"value"`
}

// Query evaluates an expression now. An error of Prometheus is an error here.
func (m *Monitor) Query(ctx context.Context, expr string) ([]Series, error) {
	body, err := m.cluster.Fetch(ctx, "http://"+PrometheusAddr+"/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("query %s: %w", expr, err)
	}
	if answer.Data.ResultType != "vector" {
		return nil, fmt.Errorf("query %s: a %s, not a vector", expr, answer.Data.ResultType)
	}
	var out []Series
	return out, json.Unmarshal(answer.Data.Result, &out)
}
