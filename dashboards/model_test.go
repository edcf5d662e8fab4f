package dashboards_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dashboard is the part of Grafana's model that the checks read.
type dashboard struct {
	UID, Title, Description, Timezone string
	Panels                            []panel
	Templating                        struct{ List []variable }

	file string
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               datasource
	Targets                  []target
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct{ Unit, NoValue string }
	}
}

type target struct {
	RefID, Expr, LegendFormat, Format string
	Instant                           bool
	Datasource                        datasource
}

type datasource struct{ Type, UID string }

type variable struct {
	Name, Type, Definition, AllValue string
	Query                            any
	Multi, IncludeAll                bool
	Datasource                       datasource
}

// dashboards reads every dashboard that is committed.
func dashboards(t *testing.T) []dashboard {
	t.Helper()
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	var out []dashboard
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := dashboard{file: name}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(d.Panels) == 0 {
			t.Fatalf("%s: no panels", name)
		}
		out = append(out, d)
	}
	return out
}

// queries calls f for every query of every panel.
func queries(t *testing.T, f func(where string, p panel, q target)) {
	t.Helper()
	n := 0
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				n++
				f(fmt.Sprintf("%s: %s: %s", d.file, p.Title, q.RefID), p, q)
			}
		}
	}
	if n < 20 {
		t.Fatalf("only %d queries: the reader looks in the wrong place", n)
	}
}

// resolve replaces Grafana's variables as Grafana does with everything
// selected.
func resolve(expr, rateInterval, timeRange string) string {
	return strings.NewReplacer(
		"$__rate_interval", rateInterval, "$__range", timeRange,
		"$job", ".*", "$instance", ".*", "$model", ".*", "$leg", ".*",
	).Replace(expr)
}
