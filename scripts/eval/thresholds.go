package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"grayfail/detector"
	"grayfail/scripts/eval/scenario"
)

// variant is the defaults with one threshold changed.
type variant struct {
	name, value string
	set         func(*detector.Config)
}

// variants go up and down from each default.
func variants() []variant {
	out := []variant{{"defaults", "", func(*detector.Config) {}}}
	number := func(name string, of func(*detector.Config) *float64, values ...float64) {
		for _, v := range values {
			out = append(out, variant{name, fmt.Sprint(v), func(c *detector.Config) { *of(c) = v }})
		}
	}
	count := func(name string, of func(*detector.Config) *int, values ...int) {
		for _, v := range values {
			out = append(out, variant{name, fmt.Sprint(v), func(c *detector.Config) { *of(c) = v }})
		}
	}
	count("OpenSlow", func(c *detector.Config) *int { return &c.OpenSlow }, 2, 4, 5)
	count("OpenWithin", func(c *detector.Config) *int { return &c.OpenWithin }, 5, 20)
	count("CloseAfter", func(c *detector.Config) *int { return &c.CloseAfter }, 5, 20)
	count("LookBack", func(c *detector.Config) *int { return &c.LookBack }, 1, 8)
	count("Window", func(c *detector.Config) *int { return &c.Window }, 50, 1000)
	number("AnchorShare", func(c *detector.Config) *float64 { return &c.AnchorShare }, 0.8, 0.95)
	number("LocalShare", func(c *detector.Config) *float64 { return &c.Cause.LocalShare }, 0.5, 0.7)
	number("ExamineShare", func(c *detector.Config) *float64 { return &c.Cause.ExamineShare }, 0.15, 0.35)
	number("LegShare", func(c *detector.Config) *float64 { return &c.Cause.LegShare }, 0.4, 0.6)
	number("NameShare", func(c *detector.Config) *float64 { return &c.Cause.NameShare }, 0.4, 0.6)
	number("SecondShare", func(c *detector.Config) *float64 { return &c.Cause.SecondShare }, 0.35, 0.7)
	number("HostRest", func(c *detector.Config) *float64 { return &c.Cause.HostRest }, 0.15, 0.5)
	for _, gap := range []time.Duration{150 * time.Millisecond, 230 * time.Millisecond} {
		out = append(out, variant{"RTOGap", gap.String(), func(c *detector.Config) { c.Cause.RTOGap = gap }})
	}
	return out
}

// setThresholds plays the even seeds with every variant and writes the table.
func setThresholds(recordings *scenario.Recordings, docs string, stdout, stderr io.Writer) int {
	var text bytes.Buffer
	fmt.Fprint(&text, "# Thresholds\n\nMade by `make eval EVAL=thresholds`; do not edit. One threshold at a time is moved from its default and the generated scenarios of [evaluation.md](evaluation.md) are played with the even seeds only: the odd ones are for reporting. A default stays where no neighbour is better without being worse elsewhere.\n\n"+
		"| threshold | value | episode precision | recall | named right | wrong | abstained | paths named without a guilty one |\n|---|---|---|---|---|---|---|---|\n")
	list, seeds := scenario.List(), []uint64{0, 2, 4, 6}
	for _, v := range variants() {
		cfg := detector.DefaultConfig()
		v.set(&cfg)
		runs := make([]figures, len(list)*len(seeds))
		parallel(len(runs), func(i int) {
			s := &list[i/len(seeds)]
			t := recordings.Make(*s, seeds[i%len(seeds)])
			j := play(t, cfg, true)
			runs[i] = measure(s, t, j.says(t), j.claims(t))
		})
		var f figures
		for i := range runs {
			f.add(&runs[i])
		}
		s := f.summary()
		line := fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %d |\n", v.name, v.value, number(s.EpisodePrecision), number(s.EpisodeRecall),
			number(s.RightShare), number(s.WrongShare), number(s.AbstainedShare), f.Innocent)
		fmt.Fprint(stdout, line)
		text.WriteString(line)
	}
	if err := os.WriteFile(filepath.Join(docs, "evaluation-thresholds.md"), text.Bytes(), 0o644); err != nil {
		fmt.Fprintf(stderr, "eval: %v\n", err)
		return 1
	}
	return 0
}
