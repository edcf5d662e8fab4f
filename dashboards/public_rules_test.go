package dashboards_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"grayfail/export"
)

// The tests of this file are rules of Grafana's dashboard-linter, each under
// its name there. What they ask beside: a data source, job and instance
// variable that every query uses, titles, descriptions, queries that parse and
// $__rate_interval, is in lint_test.go.

// template-datasource-rule, template-job-rule, template-instance-rule:
// everyone's variables have everyone's names.
func TestTemplateLabels(t *testing.T) {
	want := map[string]string{"datasource": "Data source", "job": "Job", "instance": "Instance"}
	for _, d := range dashboards(t) {
		n := 0
		for _, v := range d.Templating.List {
			if label, ok := want[v.Name]; ok {
				n++
				if v.Label != label {
					t.Errorf("%s: variable %s is labelled %q", d.file, v.Name, v.Label)
				}
			}
		}
		if n != len(want) {
			t.Errorf("%s: %d of %d variables", d.file, n, len(want))
		}
	}
}

// template-on-time-change-reload-rule: what came after the dashboard was loaded
// is offered too. 2 is Grafana's number for it.
func TestTemplateOnTimeChangeReload(t *testing.T) {
	for _, d := range dashboards(t) {
		for _, v := range d.Templating.List {
			if v.Type == "query" && v.Refresh != 2 {
				t.Errorf("%s: variable %s: refresh %d", d.file, v.Name, v.Refresh)
			}
		}
	}
}

// template-uneditable-rule: what is changed by hand is lost at the next import.
func TestUneditable(t *testing.T) {
	for _, d := range dashboards(t) {
		if d.Editable {
			t.Errorf("%s can be edited", d.file)
		}
	}
}

// panel-units-rule, with Grafana's suffix for what it has no unit for.
func TestPanelUnits(t *testing.T) {
	units := []string{"none", "percentunit", "s", "bytes", "Bps", "pps", "cps", "reqps", "suffix: tok/s"}
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			if p.Type != "row" && !slices.Contains(units, p.FieldConfig.Defaults.Unit) {
				t.Errorf("%s: %s: unit %q", d.file, p.Title, p.FieldConfig.Defaults.Unit)
			}
		}
	}
}

// panel-no-targets-rule, target-histogram-rule.
func TestTargetHistogram(t *testing.T) {
	queries(t, func(where string, _ panel, q target) {
		if q.Expr == "" {
			t.Errorf("%s: no query", where)
		}
		if strings.Contains(q.Expr, "_bucket{") && !strings.Contains(q.Expr, "histogram_quantile(") {
			t.Errorf("%s: buckets as they are: %s", where, q.Expr)
		}
	})
}

// increasing takes a counter with the function that makes sense of it.
var increasing = regexp.MustCompile(`\b(?:rate|irate|increase)\(grayfail_[a-z0-9_]+\{`)

// target-counter-agg-rule. One counter is shown as the sum since the exporter
// started: its series begin with their first increase, which rate and increase
// do not see.
func TestTargetCounterAgg(t *testing.T) {
	var counters []string
	for _, d := range export.Descriptions(false) {
		switch {
		case d.Name == "grayfail_slow_excess_seconds_total":
		case d.Type == export.Counter:
			counters = append(counters, d.Name)
		case d.Type == export.Histogram:
			counters = append(counters, d.Name+"_bucket", d.Name+"_sum", d.Name+"_count")
		}
	}
	queries(t, func(where string, _ panel, q target) {
		rest := increasing.ReplaceAllString(q.Expr, "")
		for _, c := range counters {
			if strings.Contains(rest, c+"{") {
				t.Errorf("%s: the counter %s without rate or increase", where, c)
			}
		}
	})
}
