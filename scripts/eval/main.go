// Command eval scores the detector on recorded faults.
//
// In: the exporter's binary, a folder of recordings and a table of what is
// true of each. Out: a table of precision, recall and names right, wrong and
// abstained; exit code 1 where a recording misses its bounds.
//
// It runs the binary as a user would (replay --json), and once more on copies
// without the lines that only the worker's host can see: the answers must be
// the same.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("eval", flag.ContinueOnError)
	flags.SetOutput(stderr)
	exporter := flags.String("exporter", "bin/grayfail_exporter", "the exporter's binary")
	truthFile := flags.String("truth", "scripts/eval/truth.yml", "what is true of each recording")
	folder := flags.String("recordings", "detector/testdata/recordings", "folder of the recordings")
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
	header(stdout)
	failed := 0
	for _, truth := range truths {
		s, err := evaluate(*exporter, filepath.Join(*folder, truth.File), truth)
		if err != nil {
			fmt.Fprintf(stderr, "eval: %s: %v\n", truth.File, err)
			failed++
			continue
		}
		s.print(stdout, truth.File)
		if len(s.failures) > 0 {
			failed++
		}
	}
	if failed > 0 {
		fmt.Fprintf(stderr, "eval: %d of %d recordings miss their bounds\n", failed, len(truths))
		return 1
	}
	return 0
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
