package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"

	"grayfail/detector"
	"grayfail/detector/replay"
)

type replayFlags struct {
	json     bool
	together bool
	files    []string
}

// replayCommand runs the detector over recordings. Exit 0 with bad lines
// counted and named on stderr, 1 when nothing was readable.
func replayCommand(f replayFlags, stdout, stderr io.Writer) int {
	var inputs []replay.Input
	for _, path := range f.files {
		inputs = append(inputs, replay.Input{
			Name: path,
			Open: func() (io.ReadCloser, error) { return openRecording(path) },
		})
	}
	cfg := detector.DefaultConfig()
	var results []replay.Result
	if f.together {
		res, err := replay.Run(cfg, inputs...)
		report(stderr, res, err)
		if err == nil {
			results = append(results, res)
		}
	} else {
		for _, in := range inputs {
			res, err := replay.Run(cfg, in)
			report(stderr, res, err)
			if err == nil {
				results = append(results, res)
			}
		}
	}
	if len(results) == 0 {
		return exitFail
	}
	if err := printReplay(stdout, f, results); err != nil {
		fmt.Fprintf(stderr, "grayfail_exporter replay: %v\n", err)
		return exitFail
	}
	return exitOK
}

// openRecording refuses what cannot be read twice: a pipe is empty the second
// time, or waits for a writer for ever.
func openRecording(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeCharDevice) != 0 {
		return nil, replay.ErrOnce
	}
	return os.Open(path)
}

func report(stderr io.Writer, res replay.Result, err error) {
	for _, bad := range res.Bad {
		fmt.Fprintln(stderr, bad)
	}
	if err != nil {
		fmt.Fprintf(stderr, "grayfail_exporter replay: %v\n", err)
	}
}

func printReplay(w io.Writer, f replayFlags, results []replay.Result) error {
	if !f.json {
		for _, res := range results {
			if err := res.WriteText(w); err != nil {
				return err
			}
		}
		return nil
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	if len(f.files) == 1 || f.together {
		return enc.Encode(results[0])
	}
	return enc.Encode(results)
}
