// Command eval scores the detector on generated timelines and on recorded
// faults.
//
// In: the exporter's binary, a folder of recordings and a table of what is
// true of each; the timelines are made from the recordings and seeds. Out: a
// report in Markdown and JSON (docs/evaluation.*) and the tables on standard
// output; exit code 1 where a recording's bound is missed or, with -check,
// where the committed report says something else. A target that is not met is
// printed as such.
//
// Recordings go through the binary as a user would run it (replay --json), and
// once more without the lines that only the worker's host can see: the answers
// must be the same.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grayfail/detector"
	"grayfail/scripts/eval/scenario"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("eval", flag.ContinueOnError)
	flags.SetOutput(stderr)
	exporter := flags.String("exporter", "bin/grayfail_exporter", "the exporter's binary")
	truthFile := flags.String("truth", "scripts/eval/truth.yml", "what is true of each recording")
	folder := flags.String("recordings", "detector/testdata/recordings", "folder of the recordings")
	docs := flags.String("docs", "docs", "folder of the report")
	seeds := flags.Int("seeds", 8, "seeds of each scenario; the even ones are what thresholds are set on")
	days := flags.Int("days", 40, "series-days without a fault at each noise level")
	check := flags.Bool("check", false, "fail if the report in its place says something else")
	thresholds := flags.Bool("thresholds", false, "try other thresholds on the even seeds, and write what they would do")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	truths, err := readTruth(*truthFile)
	if err == nil {
		err = sameFiles(truths, *folder)
	}
	if err != nil {
		fmt.Fprintf(stderr, "eval: %v\n", err)
		return 1
	}
	lines, failed := recorded(*exporter, *folder, truths, stdout, stderr)
	recordings, err := scenario.Read(*folder)
	if err != nil {
		fmt.Fprintf(stderr, "eval: %v\n", err)
		return 1
	}
	if *thresholds {
		return setThresholds(recordings, *docs, stdout, stderr)
	}
	even, odd := suite(recordings, *seeds, detector.DefaultConfig())
	report := newReport(*seeds, even, odd, allNull(*days), lines)
	report.markdown(stdout)
	changed, err := report.write(*docs)
	if err != nil {
		fmt.Fprintf(stderr, "eval: %v\n", err)
		return 1
	}
	code := 0
	if missed := report.met(); missed > 0 {
		fmt.Fprintf(stderr, "eval: %d targets are not met: the report says which\n", missed)
	}
	if failed > 0 {
		fmt.Fprintf(stderr, "eval: %d of %d recordings miss their bounds\n", failed, len(truths))
		code = 1
	}
	if *check && changed {
		fmt.Fprintf(stderr, "eval: %s/evaluation.* said something else: the new report is in its place, look at it and commit it\n", *docs)
		code = 1
	}
	return code
}

// recorded scores the recordings of the real engine.
func recorded(exporter, folder string, truths []truth, stdout, stderr io.Writer) (lines []recordingLine, failed int) {
	header(stdout)
	for _, truth := range truths {
		s, err := evaluate(exporter, filepath.Join(folder, truth.File), truth)
		if err != nil {
			fmt.Fprintf(stderr, "eval: %s: %v\n", truth.File, err)
			failed++
			continue
		}
		s.print(stdout, truth.File)
		if len(s.failures) > 0 {
			failed++
		}
		lines = append(lines, recordingLine{
			Name: strings.TrimSuffix(truth.File, ".jsonl.gz"), Requests: s.requests, Slow: s.slow, Found: s.found, Hits: s.hits,
			Right: s.right, Wrong: s.wrong, Abstained: s.abstain, Failures: len(s.failures),
		})
	}
	return lines, failed
}

// write puts the report into a folder, and tells whether that changed it.
func (r *report) write(folder string) (changed bool, err error) {
	var text bytes.Buffer
	r.markdown(&text)
	object, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return false, err
	}
	for name, data := range map[string][]byte{"evaluation.md": text.Bytes(), "evaluation.json": append(object, '\n')} {
		path := filepath.Join(folder, name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			continue
		}
		changed = true
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// sameFiles refuses a recording without truth and a truth without recording.
func sameFiles(truths []truth, folder string) error {
	have, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil {
		return err
	}
	for i := range have {
		have[i] = filepath.Base(have[i])
	}
	var want []string
	for _, t := range truths {
		want = append(want, t.File)
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		return fmt.Errorf("truth is known of %v, recordings are %v", want, have)
	}
	return nil
}

func evaluate(exporter, path string, truth truth) (score, error) {
	requests, err := readRequests(path)
	if err != nil {
		return score{}, err
	}
	rows, err := replay(exporter, path)
	if err != nil {
		return score{}, err
	}
	s := judge(truth, requests, rows)

	alone, err := coordinatorOnly(path)
	if err != nil {
		return score{}, err
	}
	defer os.RemoveAll(filepath.Dir(alone))
	rowsAlone, err := replay(exporter, alone)
	if err != nil {
		return score{}, err
	}
	s.compare(rows, rowsAlone)
	return s, nil
}
