package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kingpin/v2"

	"grayfail/lab/campaign/runner"
	"grayfail/lab/campaign/spec"
)

// campaignRunFlags are those of "campaign run".
type campaignRunFlags struct {
	spec, out string
	dryRun    bool
}

// addCampaignRun adds it as what "campaign" does by itself, and returns its
// full name.
func addCampaignRun(cmd *kingpin.CmdClause, f *campaignRunFlags) string {
	r := cmd.Command("run", "Play a campaign, or go on with it: make each condition, send requests under it, leave the network as it was (the default). Exit: 1 when it did not come to its end.").Default()
	r.Flag("spec", "The specification: a YAML file.").Required().StringVar(&f.spec)
	r.Flag("out", "The folder for plan, runs and report; one that holds a part of the same campaign is gone on with.").StringVar(&f.out)
	r.Flag("dry-run", "Print the plan and do nothing.").BoolVar(&f.dryRun)
	return r.FullCommand()
}

// campaignRunCommand exits 1 when the specification cannot be used or the
// campaign did not come to its end.
func campaignRunCommand(ctx context.Context, f campaignRunFlags, stdout, stderr io.Writer) int {
	if f.out == "" && !f.dryRun {
		fmt.Fprintln(stderr, "grayfail_exporter campaign: --out is needed: the folder for plan, runs and report; see grayfail_exporter --help")
		return exitUsage
	}
	text, err := os.ReadFile(f.spec)
	if err != nil {
		return campaignFailed("run", err, stderr)
	}
	s, err := spec.Parse(text)
	if err != nil {
		return campaignFailed("run", fmt.Errorf("%s: %w", f.spec, err), stderr)
	}
	if f.dryRun {
		fmt.Fprint(stdout, s.Text())
		return exitOK
	}
	err = runner.Run(ctx, runner.Options{Spec: s, Text: text, Dir: f.out, Log: stdout})
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(stderr, "grayfail_exporter campaign: interrupted: the condition is cleared, what was measured is in %s; the same command goes on\n", f.out)
		return exitFail
	}
	if err != nil {
		return campaignFailed("run", err, stderr)
	}
	fmt.Fprintf(stdout, "%s/report.md says what it came to\n", f.out)
	return exitOK
}
