package export

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// contract is every metric of the metric contract that has data so far, spelt
// out again so that the table in table.go is not compared with itself.
const contract = `
requests_total{source,model,outcome} counter
request_verdicts_total{source,model,phase,verdict} counter
request_tokens_per_second{source,model,phase} histogram
request_normalized_rate{source,model,phase} histogram
request_duration_seconds{source,model} histogram
request_time_to_first_token_seconds{source,model} histogram
request_http_stage_seconds{upstream,stage} histogram
requests_in_flight{source,model} gauge
baseline_tokens_per_second{source,model,phase} gauge
baseline_anchor_tokens_per_second{source,model,phase} gauge
baseline_samples{source,model,phase} gauge
baseline_log_sigma{source,model,phase} gauge
baseline_state{source,model,phase,state} gauge
baseline_adopted_total{source,model,phase} counter
baseline_eroded{source,model,phase} gauge
episode_active{source,model,phase} gauge
episodes_total{source,model,cause} counter
episode_cause{source,model,cause,leg} gauge
slow_excess_seconds_total{source,model,leg,cause} counter
qdisc_bytes_total{netns,device,kind,handle,parent} counter
qdisc_packets_total{netns,device,kind,handle,parent} counter
qdisc_drops_total{netns,device,kind,handle,parent} counter
qdisc_requeues_total{netns,device,kind,handle,parent} counter
qdisc_overlimits_total{netns,device,kind,handle,parent} counter
qdisc_backlog_bytes{netns,device,kind,handle,parent} gauge
qdisc_queue_packets{netns,device,kind,handle,parent} gauge
leg_info{leg,role,netns,local,peer,device,rdma_device,rdma_port} gauge
leg_expected{leg,expected} gauge
leg_transport{leg,transport} gauge
leg_fallback{leg,reason} gauge
leg_fallback_seconds_total{leg} counter
host_info{address} gauge
tcp_retransmits_total{leg,kind} counter
tcp_connection_duration_seconds{leg} histogram
tcp_exchange_seconds{leg} histogram
tcp_exchange_stall_seconds{leg} histogram
tcp_rtt_seconds{leg} gauge
tcp_min_rtt_seconds{leg} gauge
tcp_payload_bytes_total{leg,direction} counter
tcp_out_of_order_packets_total{leg} counter
tcp_connections{leg} gauge
rdma_port_info{device,port,netdev,link_layer,protocol} gauge
rdma_port_active{device,port} gauge
rdma_port_rate_bytes_per_second{device,port} gauge
rdma_queue_pairs{device,port,type,state} gauge
rdma_hw_events_total{device,port,event} counter
path_rank_correlation{model,leg,evidence} gauge
path_rank_correlation_p_value{model,leg,evidence} gauge
path_rank_correlation_requests{model,leg,evidence} gauge
path_rank_correlation_family_p_value{model,leg,evidence} gauge
request_intake_total{source,result} counter
detector_ignored_total{reason} counter
detector_freed_total{table} counter
detector_entries{table} gauge
detector_clock_steps_total{} counter
collector_up{collector} gauge
collector_problem_info{collector,reason} gauge
collector_duration_seconds{collector} gauge
collector_errors_total{collector} counter
events_lost_total{collector} counter
series_overflow_total{} counter
config_last_reload_successful{} gauge
config_last_reload_success_timestamp_seconds{} gauge
build_info{version,revision,branch,goversion,goos,goarch,tags} gauge
`

type contractLine struct {
	name, kind string
	labels     []string
}

func contractLines(t *testing.T) []contractLine {
	t.Helper()
	form := regexp.MustCompile(`^(\w+)\{([\w,]*)\} (\w+)$`)
	var out []contractLine
	for line := range strings.Lines(strings.TrimSpace(contract)) {
		f := form.FindStringSubmatch(strings.TrimSpace(line))
		if f == nil {
			t.Fatalf("contract line %q", line)
		}
		c := contractLine{name: f[1], kind: f[3]}
		if f[2] != "" {
			c.labels = strings.Split(f[2], ",")
		}
		out = append(out, c)
	}
	return out
}

func TestEveryMetricOfTheContractIsThere(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	feedEverything(m)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		got[f.GetName()] = f
	}
	lines := contractLines(t)
	for _, c := range lines {
		f := got[namespace+c.name]
		if f == nil {
			t.Errorf("%s has no series", c.name)
			continue
		}
		delete(got, f.GetName())
		if kind := strings.ToLower(f.GetType().String()); kind != c.kind {
			t.Errorf("%s is a %s, want %s", c.name, kind, c.kind)
		}
		want := slices.Sorted(slices.Values(c.labels))
		for _, series := range f.GetMetric() {
			var labels []string
			for _, l := range series.GetLabel() {
				labels = append(labels, l.GetName())
			}
			if !slices.Equal(labels, want) {
				t.Errorf("%s has labels %v, want %v", c.name, labels, want)
			}
			if h := series.GetHistogram(); h != nil && (len(h.GetBucket()) == 0 || h.Schema == nil) {
				t.Errorf("%s has %d classic buckets and native schema %v, want both kinds", c.name, len(h.GetBucket()), h.Schema)
			}
		}
	}
	for name := range got {
		t.Errorf("%s is not in the contract", name)
	}
	if len(lines) != int(numMetrics) {
		t.Errorf("contract has %d metrics, the table %d", len(lines), numMetrics)
	}
}

func TestDescriptionsMatchTheContract(t *testing.T) {
	byName := make(map[string]Description)
	for _, d := range Descriptions(false) {
		byName[d.Name] = d
	}
	for _, c := range contractLines(t) {
		d, ok := byName[namespace+c.name]
		if !ok {
			t.Errorf("%s has no description", c.name)
			continue
		}
		if string(d.Type) != c.kind || !slices.Equal(d.Labels, c.labels) {
			t.Errorf("%s: %s %v, want %s %v", c.name, d.Type, d.Labels, c.kind, c.labels)
		}
		if !strings.HasSuffix(d.Help, ".") || strings.ContainsAny(d.Help, "\n\r") {
			t.Errorf("%s: help is no sentence: %q", c.name, d.Help)
		}
		if isHistogram := c.kind == "histogram"; isHistogram != (len(d.Buckets) > 0) || !slices.IsSorted(d.Buckets) {
			t.Errorf("%s: buckets %v", c.name, d.Buckets)
		}
	}
	if n := len(byName); n != len(contractLines(t)) {
		t.Errorf("%d descriptions, want %d", n, len(contractLines(t)))
	}
}

func TestStrataAddOneLabelToBaselinesOnly(t *testing.T) {
	plain, strata := Descriptions(false), Descriptions(true)
	for i := range plain {
		want := slices.Clone(plain[i].Labels)
		if strings.HasPrefix(plain[i].Name, namespace+"baseline_") {
			want = slices.Insert(want, 3, "concurrency")
		}
		if !slices.Equal(strata[i].Labels, want) {
			t.Errorf("%s: labels %v, want %v", strata[i].Name, strata[i].Labels, want)
		}
	}
}

func TestGoldenScrape(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	feedEverything(m)
	// The version is the build's, not ours.
	got := regexp.MustCompile(`(?m)^grayfail_build_info\{.*\} 1\n`).ReplaceAllString(scrape(t, reg), "")
	const golden = "testdata/scrape.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("scrape differs from %s (-want +got):\n%s", golden, diff)
	}
}

// promtool of Debian's prometheus package is part of the test environment.
func checkMetrics(t *testing.T, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil || out.Len() != 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out.String())
	}
}

func TestPromtoolIsSilent(t *testing.T) {
	for name, strata := range map[string]bool{"plain": false, "strata": true} {
		t.Run(name, func(t *testing.T) {
			m, reg := newMetrics(t, Options{Strata: strata})
			feedEverything(m)
			text := scrape(t, reg)
			if n := strings.Count(text, "# TYPE "); n != int(numMetrics) {
				t.Errorf("%d metrics in the scrape, want %d", n, numMetrics)
			}
			checkMetrics(t, text)
		})
	}
}

func TestEmptyScrapeSaysNothingAboutWhatIsNotKnown(t *testing.T) {
	_, reg := newMetrics(t, Options{})
	got := samples(t, reg)
	for name := range got {
		if name != "series_overflow_total" && !strings.HasPrefix(name, "build_info{") {
			t.Errorf("%s before anything was published", name)
		}
	}
	if len(got) != 2 {
		t.Errorf("%d samples, want 2", len(got))
	}
	checkMetrics(t, scrape(t, reg))
}
