package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// grid is a Markdown table that reads well as plain text too: the first column
// to the left, all others to the right.
type grid struct{ rows [][]string }

func newGrid(header ...string) *grid { return &grid{[][]string{header}} }

func (g *grid) add(cells ...string) {
	for i := range cells {
		cells[i] = cell(cells[i])
	}
	g.rows = append(g.rows, cells)
}

// cell keeps names from the outside from breaking the table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(s)
}

func (g *grid) String() string {
	width := make([]int, len(g.rows[0]))
	for _, row := range g.rows {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c), 3)
		}
	}
	var b strings.Builder
	line := func(row []string) {
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i == 0 {
				b.WriteString("| " + c + pad + " |")
			} else {
				b.WriteString(" " + pad + c + " |")
			}
		}
		b.WriteByte('\n')
	}
	line(g.rows[0])
	for i, w := range width {
		if i == 0 {
			b.WriteString("|:" + strings.Repeat("-", w+1) + "|")
		} else {
			b.WriteString(strings.Repeat("-", w+1) + ":|")
		}
	}
	b.WriteByte('\n')
	for _, row := range g.rows[1:] {
		line(row)
	}
	return b.String()
}

// number prints what may be unknown.
func number(format string, v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}

func span(format string, low, high *float64) string {
	if low == nil || high == nil {
		return "-"
	}
	return fmt.Sprintf(format, *low) + "-" + fmt.Sprintf(format, *high)
}

func of(part, whole int) string { return fmt.Sprintf("%d/%d", part, whole) }
