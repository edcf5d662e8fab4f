package cost

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

// Write prints the report. Plots are linked in the folder given by its name;
// there says which other pages of the documentation exist.
func Write(w io.Writer, sections []Section, plots string, there func(name string) bool) error {
	var b bytes.Buffer
	fmt.Fprint(&b, preface)
	for _, link := range links {
		if there(link.page) {
			fmt.Fprintf(&b, "- [%s](%s): %s\n", link.page, link.page, link.has)
		}
	}
	fmt.Fprintln(&b)
	writeTargets(&b, sections)
	writeGrowth(&b, sections)
	for i := range sections {
		if err := writeSection(&b, &sections[i], plots); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

const preface = `# What it costs

Made by ` + "`make bench BENCH=report`" + `; do not edit. Each section is one run on one machine, whose load is stated: compare within a section, not between them, and read ratios before figures.

`

var links = []struct{ page, has string }{
	{"proxy-cost.md", "the proxy beside nginx"},
	{"bench.txt", "every Go benchmark by benchstat, with what it allocates"},
	{"limits.md", "every table with its bound, and the test that holds it"},
}

func writeTargets(b *bytes.Buffer, sections []Section) {
	fmt.Fprint(b, "## Targets\n\n| target | aim | measured | met |\n|---|---|---|---|\n")
	var why []string
	for _, s := range sections {
		for _, t := range s.Targets {
			met := "yes"
			if !t.Met {
				met = "**no**"
				why = append(why, fmt.Sprintf("- **%s**: %s", t.What, t.Why))
			}
			fmt.Fprintf(b, "| [%s](#%s) | %s | %s | %s |\n", t.What, s.ID, t.Aim, t.Got, met)
		}
	}
	fmt.Fprintln(b)
	if len(why) > 0 {
		fmt.Fprintf(b, "Not met:\n\n%s\n\n", strings.Join(why, "\n"))
	}
}

func writeGrowth(b *bytes.Buffer, sections []Section) {
	fmt.Fprintf(b, "## Growth\n\nCost = size^slope, least squares of the logarithms; the last step is the slope between the two largest sizes. At most linear: up to %.1f, since a shared machine gives no exact doubles, and the last step up to %.1f, since the largest sizes leave the CPU's caches.\n\n", linear, linearLast)
	fmt.Fprint(b, "| cost | against | from | to | slope | last step | at most linear |\n|---|---|---|---|---|---|---|\n")
	for _, s := range sections {
		for _, c := range s.Curves {
			if c.Reference || len(c.Points) < 2 {
				continue
			}
			g, verdict := c.Growth(), "yes"
			if !g.Linear() {
				verdict = "**no**"
			}
			first, last := c.Points[0], c.Points[len(c.Points)-1]
			fmt.Fprintf(b, "| [%s](#%s) | %s | %g: %.4g %s | %g: %.4g %s | %.2f | %.2f | %s |\n", c.Name, s.ID, c.Size, first.X, first.Y, c.Unit, last.X, last.Y, c.Unit, g.Slope, g.Last, verdict)
		}
	}
	fmt.Fprint(b, "\nKnown to grow by a logarithm more: a request with exchanges on many legs is merged over its legs by a heap (`detector/occupancy.go`, half of that benchmark by its profile), and baselines are sorted. The rest of a slope above 1 was not looked into; caches and the collection of garbage are likely. Nothing is near 2, which is quadratic.\n\n")
}

func writeSection(b *bytes.Buffer, s *Section, plots string) error {
	m := s.Machine
	fmt.Fprintf(b, "<a id=\"%s\"></a>\n## %s\n\n%s\n\n", s.ID, s.Title, s.Method)
	fmt.Fprintf(b, "%s, revision %s, Linux %s, %s, %d cores, %s; load %.2f before, %.2f after; %s.\n\n", m.Date, m.Revision, m.Kernel, m.CPU, m.Cores, m.Go, m.LoadBefore, m.LoadAfter, s.Took.Round(time.Second))
	for _, t := range s.Tables {
		fmt.Fprintf(b, "### %s\n\n| %s |\n|%s\n", t.Title, strings.Join(t.Header, " | "), strings.Repeat("---|", len(t.Header)))
		for _, row := range t.Rows {
			fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		}
		fmt.Fprintln(b)
		if t.Note != "" {
			fmt.Fprintf(b, "%s\n\n", t.Note)
		}
	}
	files, err := s.Plots()
	if err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(b, "![%s](%s/%s)\n\n", s.Title, plots, f.Name)
	}
	return nil
}
