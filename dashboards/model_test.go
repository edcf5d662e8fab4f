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
	Editable                          bool
	Tags                              []string
	Panels                            []panel
	Links                             []link
	Templating                        struct{ List []variable }
	Annotations                       struct{ List []annotation }

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
	Links []link

	file string
}

type link struct {
	Type, URL             string
	Tags                  []string
	IncludeVars, KeepTime bool
}

type annotation struct {
	Name, Expr, TitleFormat string
	Enable                  bool
	Datasource              datasource
}

type target struct {
	RefID, Expr, LegendFormat, Format string
	Instant                           bool
	Datasource                        datasource
}

type datasource struct{ Type, UID string }

type variable struct {
	Name, Label, Type, Definition, AllValue string
	Query                                   any
	Multi, IncludeAll                       bool
	Refresh                                 int
	Datasource                              datasource
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

// queries calls f for every query of every panel and annotation.
func queries(t *testing.T, f func(where string, p panel, q target)) {
	t.Helper()
	n := 0
	for _, d := range dashboards(t) {
		for _, a := range d.Annotations.List {
			f(d.file+": annotation "+a.Name, panel{Type: "annotation", Title: "Annotation: " + a.Name, file: d.file}, target{Expr: a.Expr, LegendFormat: a.TitleFormat, Datasource: a.Datasource})
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				n++
				p.file = d.file
				f(fmt.Sprintf("%s: %s: %s", d.file, p.Title, q.RefID), p, q)
			}
		}
	}
	if n < 20 {
		t.Fatalf("only %d queries: the reader looks in the wrong place", n)
	}
}

// resolve replaces Grafana's variables as Grafana does with everything
// selected, but for the instance.
func resolve(expr, rateInterval, timeRange, instance string) string {
	return strings.NewReplacer(
		"$__rate_interval", rateInterval, "$__range", timeRange,
		"$job", ".*", "$instance", strings.ReplaceAll(instance, `\`, `\\`), "$model", ".*", "$leg", ".*",
	).Replace(expr)
}
