package dashboards_test

import (
	"fmt"
	"maps"
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

func TestDashboardsHaveTheirVariables(t *testing.T) {
	for _, d := range dashboards(t) {
		if d.UID == "" || d.Title == "" || d.Description == "" || d.Timezone != "browser" {
			t.Errorf("%s: uid %q, title %q, description %q, timezone %q", d.file, d.UID, d.Title, d.Description, d.Timezone)
		}
		var names []string
		for _, v := range d.Templating.List {
			names = append(names, v.Name)
			if v.Name == "datasource" {
				if v.Type != "datasource" || v.Query != "prometheus" {
					t.Errorf("%s: variable datasource is a %s of %v", d.file, v.Type, v.Query)
				}
				continue
			}
			if v.Name == "runbooks" {
				if address, _ := v.Query.(string); v.Type != "textbox" || !strings.HasPrefix(address, "https://") {
					t.Errorf("%s: variable runbooks is a %s of %v", d.file, v.Type, v.Query)
				}
				continue
			}
			if v.Type != "query" || v.Datasource.UID != "${datasource}" || !strings.HasPrefix(v.Definition, "label_values(") {
				t.Errorf("%s: variable %s: %+v", d.file, v.Name, v)
			}
			// Time that no leg explains has leg "": all must hold it.
			all := ".*"
			if v.Name == "job" || v.Name == "instance" {
				all = ".+"
			}
			if !v.Multi || !v.IncludeAll || v.AllValue != all {
				t.Errorf("%s: variable %s: several, and all of them as %s, must be possible", d.file, v.Name, all)
			}
		}
		if want := []string{"datasource", "job", "instance", "model", "leg", "runbooks"}; !slices.Equal(names, want) {
			t.Errorf("%s: variables %v, want %v", d.file, names, want)
		}
	}
}

func TestPanelsAreExplained(t *testing.T) {
	for _, d := range dashboards(t) {
		titles, ids := map[string]bool{}, map[int]bool{}
		for _, p := range d.Panels {
			if p.ID == 0 || ids[p.ID] {
				t.Errorf("%s: %s: id %d is missing or taken", d.file, p.Title, p.ID)
			}
			ids[p.ID] = true
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || titles[p.Title] {
				t.Errorf("%s: title %q is empty or taken", d.file, p.Title)
			}
			titles[p.Title] = true
			if len(p.Description) < 20 {
				t.Errorf("%s: %s: description %q", d.file, p.Title, p.Description)
			}
			if p.Datasource.UID != "${datasource}" || p.Datasource.Type != "prometheus" {
				t.Errorf("%s: %s: data source %+v", d.file, p.Title, p.Datasource)
			}
			if len(p.Targets) == 0 {
				t.Errorf("%s: %s: no query", d.file, p.Title)
			}
			// Absence is not zero: a number that cannot be told says so.
			if p.Type == "stat" && p.FieldConfig.Defaults.NoValue == "" {
				t.Errorf("%s: %s: shows nothing where there is no data", d.file, p.Title)
			}
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	for _, d := range dashboards(t) {
		taken := map[[2]int]string{}
		for _, p := range d.Panels {
			g := p.GridPos
			if g.W <= 0 || g.H <= 0 || g.X < 0 || g.X+g.W > 24 {
				t.Errorf("%s: %s: off the grid: %+v", d.file, p.Title, g)
			}
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other, ok := taken[[2]int{x, y}]; ok {
						t.Fatalf("%s: %q lies on %q", d.file, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

var (
	window       = regexp.MustCompile(`\[([^\]]*)\]`)
	selector     = regexp.MustCompile(`\b((?:[a-z_]+:)?grayfail_[a-z0-9_]+(?::[a-z0-9]+)?)(\{[^}]*\})?`)
	quoted       = regexp.MustCompile(`"[^"]*"`)
	matcherLabel = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!=|!~|=)`)
)

// recorded gives the labels of what the recording rules make: by convention
// those that the name begins with ("model_leg:grayfail_x:increase5m").
func recorded(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../alerts/grayfail.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]string)
	for _, m := range regexp.MustCompile(`(?m)^ +- record: (([a-z_]+):\S+)$`).FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = append(strings.Split(m[2], "_"), "job", "instance")
	}
	if len(out) == 0 {
		t.Fatal("found no recording rule")
	}
	return out
}

func TestQueriesKeepToTheContract(t *testing.T) {
	contract := make(map[string][]string)
	for _, d := range export.Descriptions(false) {
		names := []string{d.Name}
		if d.Type == export.Histogram {
			names = []string{d.Name + "_bucket", d.Name + "_sum", d.Name + "_count"}
		}
		for _, n := range names {
			contract[n] = append([]string{"job", "instance"}, d.Labels...)
		}
	}
	maps.Copy(contract, recorded(t))
	queries(t, func(where string, p panel, q target) {
		if q.Datasource.UID != "${datasource}" {
			t.Errorf("%s: data source %+v", where, q.Datasource)
		}
		if p.Type != "table" && q.LegendFormat == "" {
			t.Errorf("%s: no legend", where)
		}
		for _, w := range window.FindAllStringSubmatch(quoted.ReplaceAllString(q.Expr, ""), -1) {
			if w[1] != "$__rate_interval" && w[1] != "$__range" {
				t.Errorf("%s: a window of [%s] does not follow the zoom or the scrape interval", where, w[1])
			}
		}
		if strings.Contains(q.Expr, "sum") && strings.Contains(q.Expr, "grayfail_qdisc_") {
			t.Errorf("%s: root and child qdiscs count the same packets: do not sum them", where)
		}
		if strings.Contains(q.Expr, "vector(") {
			t.Errorf("%s: a made-up value where there is no data", where)
		}
		selectors := selector.FindAllStringSubmatch(q.Expr, -1)
		if len(selectors) == 0 {
			t.Errorf("%s: no metric of ours in %s", where, q.Expr)
		}
		for _, s := range selectors {
			labels, ok := contract[s[1]]
			if !ok {
				t.Errorf("%s: %s is no metric of the exporter and no recording rule", where, s[1])
				continue
			}
			for _, l := range matcherLabel.FindAllStringSubmatch(s[2], -1) {
				if !slices.Contains(labels, l[1]) {
					t.Errorf("%s: %s has no label %s", where, s[1], l[1])
				}
			}
			for _, want := range []string{`job=~"$job"`, `instance=~"$instance"`} {
				if !strings.Contains(s[2], want) {
					t.Errorf("%s: %s without %s", where, s[1], want)
				}
			}
			// A variable that could narrow a query down and does not is a trap; but
			// a leg that a peer opened is not the one that its coordinator names.
			for _, v := range []string{"model", "leg"} {
				if slices.Contains(labels, v) && !strings.Contains(s[2], v+`=~"$`+v+`"`) && !strings.Contains(s[2], `leg=~"from .*"`) {
					t.Errorf("%s: %s ignores the variable %s", where, s[1], v)
				}
			}
		}
	})
}

// promtool parses queries only as rules, so that is what they become here.
func TestQueriesParse(t *testing.T) {
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	type group struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	}
	var rules []rule
	queries(t, func(_ string, _ panel, q target) {
		rules = append(rules, rule{fmt.Sprintf("query:%d", len(rules)), resolve(q.Expr, "1m", "1h", ".*")})
	})
	text, err := yaml.Marshal(map[string][]group{"groups": {{"dashboards", rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := testkit.Run(t, "promtool", "check", "rules", file); !strings.Contains(out, fmt.Sprintf("%d rules found", len(rules))) {
		t.Errorf("promtool: %s", out)
	}
}
