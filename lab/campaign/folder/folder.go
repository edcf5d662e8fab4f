// Package folder reads what a campaign left in its folder.
//
// In: a directory with plan.json and runs.jsonl, and the drawings that were
// made of it. Out: report.Results; errors that name file and line.
package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"grayfail/lab/campaign/report"
)

// Files of a campaign's folder.
const (
	Spec   = "spec.yml"
	Plan   = "plan.json"
	Runs   = "runs.jsonl"
	Report = "report.md"
)

// Load analyses the campaign in dir. A campaign that is still running or was
// interrupted gives the results so far.
func Load(dir string) (*report.Results, error) {
	path := filepath.Join(dir, Plan)
	plan, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	method, err := report.ReadMethod(plan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	path = filepath.Join(dir, Runs)
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) { // before the first run
		return report.Analyse(method, report.Runs{})
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	runs, err := report.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	res, err := report.Analyse(method, runs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return res, nil
}

// Drawings are the names of the drawings that dir holds, for the report to
// show.
func Drawings(dir string) []string {
	var out []string
	for _, name := range []string{"strip.svg", "ecdf.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			out = append(out, name)
		}
	}
	return out
}
