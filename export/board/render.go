package board

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"sync"
)

//go:embed assets
var assets embed.FS

// sections are the parts of the page that are kept current: the ids of its
// elements and the names of their templates.
var sections = []string{"asof", "head", "legs", "models", "requests", "episodes", "collectors"}

var templates = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page.html").Funcs(template.FuncMap{"bars": bars}).ParseFS(assets, "assets/*.html")
})

// Render gives the whole page.
func Render(p *Page) ([]byte, error) {
	t, err := templates()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	return out.Bytes(), nil
}

// renderSections gives each section by its name.
func renderSections(p *Page) (map[string]string, error) {
	t, err := templates()
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(sections))
	for _, name := range sections {
		var html bytes.Buffer
		if err := t.ExecuteTemplate(&html, name, p); err != nil {
			return nil, fmt.Errorf("board: %w", err)
		}
		out[name] = html.String()
	}
	return out, nil
}

// bar is one piece of a ledger bar, in hundredths of its width.
type bar struct{ Class, X, Width string }

// bars lays shares side by side. A negative one (a leg that was faster than
// usual) has no width; the others then fill the whole.
func bars(shares []Share) []bar {
	total := 0.0
	for _, s := range shares {
		total += max(s.Percent, 0)
	}
	var out []bar
	x := 0.0
	for _, s := range shares {
		if s.Percent <= 0 {
			continue
		}
		class := "other"
		switch {
		case s.Named:
			class = "named"
		case s.Local:
			class = "local"
		}
		width := 100 * s.Percent / total
		out = append(out, bar{class, fmt.Sprintf("%.2f", x), fmt.Sprintf("%.2f", width)})
		x += width
	}
	return out
}
