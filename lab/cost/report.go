package cost

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report is docs/cost.md with its folder docs/cost.
type Report struct {
	docs     string
	sections []Section
}

// order of the sections in the report; others follow.
var order = []string{"qdisc", "scrape", "hooks", "engine", "load", "bench"}

const (
	page   = "cost.md"
	folder = "cost"
	kept   = "cost.json"
)

// Open reads the sections that were measured before; docs is the folder of the
// report.
func Open(docs string) (*Report, error) {
	r := &Report{docs: docs}
	path := filepath.Join(docs, folder, kept)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &r.sections); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Put takes a section in, in place of the one with its ID, and writes.
func (r *Report) Put(s Section) error {
	r.sections = append(slices.DeleteFunc(r.sections, func(old Section) bool { return old.ID == s.ID }), s)
	slices.SortStableFunc(r.sections, func(a, b Section) int { return place(a.ID) - place(b.ID) })
	return r.Write()
}

func place(id string) int {
	if i := slices.Index(order, id); i >= 0 {
		return i
	}
	return len(order)
}

// Write writes figures, page and plots. Plots that are no longer drawn go.
func (r *Report) Write() error {
	dir := filepath.Join(r.docs, folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r.sections, "", "\t")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	there := func(name string) bool { _, err := os.Stat(filepath.Join(r.docs, name)); return err == nil }
	if err := Write(&text, r.sections, folder, there); err != nil {
		return err
	}
	files := []File{{filepath.Join(folder, kept), append(data, '\n')}, {page, text.Bytes()}}
	drawn := map[string]bool{kept: true}
	for i := range r.sections {
		plots, err := r.sections[i].Plots()
		if err != nil {
			return err
		}
		for _, p := range plots {
			drawn[p.Name] = true
			files = append(files, File{filepath.Join(folder, p.Name), p.Data})
		}
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(r.docs, f.Name), f.Data, 0o644); err != nil {
			return err
		}
	}
	return removeOthers(dir, drawn)
}

func removeOthers(dir string, drawn map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".svg") && !drawn[e.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
