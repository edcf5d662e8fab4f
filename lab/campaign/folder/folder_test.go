package folder

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const plan = `{"method":{"spec_hash":"s","order_seed":1,"conditions":["none"]}}`

func TestLoad(t *testing.T) {
	res, err := Load(filepath.Join("..", "report", "testdata", "small"))
	if err != nil || res.Made != 17 || res.Method.Name != "small" {
		t.Errorf("%+v, %v", res, err)
	}
	dir := t.TempDir()
	write(t, dir, Plan, plan)
	if res, err := Load(dir); err != nil || res.Made != 0 {
		t.Errorf("before the first run: %+v, %v", res, err)
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	for _, c := range []struct{ plan, runs, want string }{
		{"", "", "plan.json: "},
		{"{}", "", "plan.json: method: missing"},
		{plan, "{}\n", "runs.jsonl: line 1: version 0"},
		{plan, `{"version":1,"spec_hash":"other","condition":"none","started":"2026-12-01T08:00:00Z","valid":true,"request":{"outcome":"ok"}}`, "runs.jsonl: run 0 is of the specification other, not s"},
	} {
		dir := t.TempDir()
		if c.plan != "" {
			write(t, dir, Plan, c.plan)
		}
		write(t, dir, Runs, c.runs)
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestDrawings(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "ecdf.svg", "<svg/>")
	if err := os.Mkdir(filepath.Join(dir, "strip.svg"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := Drawings(dir); !slices.Equal(got, []string{"ecdf.svg"}) {
		t.Errorf("%v", got)
	}
}
