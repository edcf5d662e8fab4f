package report

import (
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	res := analysed(t, small(), read(t, "small/runs.jsonl"))
	golden(t, "small/report.md", res.Markdown("strip.svg", "ecdf.svg"))
}

func TestMarkdownTellsDeviations(t *testing.T) {
	runs := read(t, "small/runs.jsonl")
	runs.Cut = true
	runs.Runs = runs.Runs[1:] // block 0 loses its control
	text := string(analysed(t, small(), runs).Markdown())
	for _, want := range []string{
		"2 of 18 planned runs were not made",
		"the last record was cut off",
		"loss-5: 1 request without a valid control run in the same block",
		"dead: 1 run invalid: the injector did not act",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from\n%s", want, text)
		}
	}
}

// Without anything to say the report says that.
func TestMarkdownOfNothing(t *testing.T) {
	text := string(analysed(t, Method{SpecHash: "x", Details: []string{"tc qdisc\n\n# x"}}, Runs{}).Markdown())
	for _, want := range []string{"# Campaign\n", "- tc qdisc # x\n", "None: every planned run is there and valid."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from\n%s", want, text)
		}
	}
	for _, no := range []string{"## Criteria", "## Question", "## Normalized", "![", "%!"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is in\n%s", no, text)
		}
	}
}

// A name from the outside cannot break the table.
func TestNamesInTables(t *testing.T) {
	runs := read(t, "small/runs.jsonl")
	runs.Runs = runs.Runs[:1]
	runs.Runs[0].Condition = "a|b\nc"
	text := analysed(t, Method{SpecHash: runs.Runs[0].SpecHash}, runs).Summary()
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[2], `| a\|b c`) {
		t.Errorf("%q", text)
	}
}
