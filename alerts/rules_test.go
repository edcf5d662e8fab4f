package alerts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"grayfail/export"
	"grayfail/internal/testkit"
)

const rulesFile = "grayfail.rules.yml"

type rule struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

// readRules returns every rule of the rules file.
func readRules(t *testing.T) []rule { return readRulesOf(t, rulesFile) }

func readRulesOf(t *testing.T, name string) []rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	readYAML(t, name, &file)
	var out []rule
	for _, g := range file.Groups {
		out = append(out, g.Rules...)
	}
	if len(out) == 0 {
		t.Fatal("no rules")
	}
	return out
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func unitTests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("tests/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no unit tests of the rules: %v", err)
	}
	return files
}

func TestPromtoolCheckRules(t *testing.T) {
	testkit.Run(t, "promtool", "check", "rules", rulesFile)
}

func TestPromtoolTestRules(t *testing.T) {
	out := testkit.Run(t, "promtool", append([]string{"test", "rules"}, unitTests(t)...)...)
	if got, want := strings.Count(out, "SUCCESS"), len(unitTests(t)); got != want {
		t.Errorf("%d of %d files succeeded:\n%s", got, want, out)
	}
}

// Every alert is shown to fire and not to fire, and tells the operator what to
// do next.
func TestEveryAlertIsTestedAndExplained(t *testing.T) {
	fires, silent := make(map[string]int), make(map[string]int)
	for _, name := range unitTests(t) {
		var file struct {
			Tests []struct {
				AlertRuleTest []struct {
					Alertname string
					ExpAlerts []any `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		readYAML(t, name, &file)
		for _, test := range file.Tests {
			for _, a := range test.AlertRuleTest {
				if len(a.ExpAlerts) > 0 {
					fires[a.Alertname]++
				} else {
					silent[a.Alertname]++
				}
			}
		}
	}
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		if fires[r.Alert] == 0 || silent[r.Alert] == 0 {
			t.Errorf("%s: unit tests see it fire %d times and not fire %d times; both are needed", r.Alert, fires[r.Alert], silent[r.Alert])
		}
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], "Next step:") {
			t.Errorf("%s: no summary, or no next step in the description", r.Alert)
		}
		want := "alerts/runbooks/" + r.Alert + ".md"
		if r.Annotations["runbook"] != want {
			t.Errorf("%s: runbook %q, want %q", r.Alert, r.Annotations["runbook"], want)
		}
		if text, err := os.ReadFile(filepath.Join("..", want)); err != nil || !strings.HasPrefix(string(text), "# "+r.Alert+"\n") {
			t.Errorf("%s: its runbook is missing or about something else: %v", r.Alert, err)
		}
	}
}

// metricUse finds metrics of ours in a query or template, with the matchers
// behind them. Names of recorded series have colons and are left out.
var metricUse = regexp.MustCompile(`(?:^|[^a-z0-9_:])(grayfail_[a-z0-9_]+)(?:\{([^}]*)\})?`)

var matcherLabel = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!=|!~|=)`)

// recordedName finds names of recorded series.
var recordedName = regexp.MustCompile(`[a-z_]+:grayfail_[a-z0-9_]+:[a-z0-9]+`)

func TestRulesKeepToTheContract(t *testing.T) {
	contract := make(map[string][]string)
	for _, d := range export.Descriptions(false) {
		names := []string{d.Name}
		if d.Type == export.Histogram {
			names = []string{d.Name + "_bucket", d.Name + "_sum", d.Name + "_count"}
		}
		for _, n := range names {
			contract[n] = append([]string{"job", "instance", "le"}, d.Labels...)
		}
	}
	rules := readRules(t)
	var recorded []string
	for _, r := range rules {
		if r.Record != "" {
			recorded = append(recorded, r.Record)
		}
	}
	uses := 0
	for _, r := range rules {
		text := r.Expr + "\n" + r.Annotations["description"]
		for _, m := range metricUse.FindAllStringSubmatch(text, -1) {
			name, matchers := m[1], m[2]
			if name == "grayfail_exporter" { // the program
				continue
			}
			labels, ok := contract[name]
			if !ok {
				t.Errorf("%s%s: %s is no metric of the exporter", r.Alert, r.Record, name)
				continue
			}
			uses++
			for _, l := range matcherLabel.FindAllStringSubmatch(matchers, -1) {
				if !slices.Contains(labels, l[1]) {
					t.Errorf("%s%s: %s has no label %s", r.Alert, r.Record, name, l[1])
				}
			}
		}
		for _, name := range recordedName.FindAllString(text, -1) {
			if !slices.Contains(recorded, name) {
				t.Errorf("%s%s: nobody records %s", r.Alert, r.Record, name)
			}
		}
	}
	if uses < 15 {
		t.Errorf("found only %d uses of metrics: the pattern looks for the wrong thing", uses)
	}
}
