package dashboards_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const runbooksURL = "${runbooks}/"

func TestDashboardsLeadToEachOther(t *testing.T) {
	for _, d := range dashboards(t) {
		others := slices.IndexFunc(d.Links, func(l link) bool {
			return l.Type == "dashboards" && slices.Equal(l.Tags, []string{"grayfail"}) && l.IncludeVars && l.KeepTime
		})
		if others < 0 || !slices.Contains(d.Tags, "grayfail") {
			t.Errorf("%s: no way to the other dashboards: tags %v, links %+v", d.file, d.Tags, d.Links)
		}
		if !slices.ContainsFunc(d.Links, func(l link) bool { return l.Type == "link" && l.URL == runbooksURL }) {
			t.Errorf("%s: no way to the runbooks: %+v", d.file, d.Links)
		}
	}
}

func TestLinksLeadToRunbooks(t *testing.T) {
	for _, d := range dashboards(t) {
		n := 0
		for _, p := range d.Panels {
			for _, l := range p.Links {
				n++
				page, ok := strings.CutPrefix(l.URL, runbooksURL)
				if !ok {
					t.Errorf("%s: %s: link to %s", d.file, p.Title, l.URL)
				}
				if _, err := os.Stat(filepath.Join("..", "alerts", "runbooks", page)); err != nil {
					t.Errorf("%s: %s: %v", d.file, p.Title, err)
				}
			}
		}
		if n == 0 {
			t.Errorf("%s: no panel tells what to do next", d.file)
		}
	}
}

func TestEpisodesAreAnnotated(t *testing.T) {
	for _, d := range dashboards(t) {
		if !slices.ContainsFunc(d.Annotations.List, func(a annotation) bool {
			return a.Enable && strings.Contains(a.Expr, "grayfail_episode_cause{") && strings.Contains(a.TitleFormat, "{{cause}}")
		}) {
			t.Errorf("%s: episodes are not marked: %+v", d.file, d.Annotations.List)
		}
	}
}
