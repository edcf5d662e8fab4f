package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/alecthomas/kingpin/v2"

	"grayfail/lab/campaign/folder"
	campaign "grayfail/lab/campaign/report"
)

// campaignReportFlags are those of "campaign report" and "campaign compare".
type campaignReportFlags struct {
	json      bool
	dir, a, b string
}

// addCampaignReports adds both below the campaign command, and returns their
// full names.
func addCampaignReports(cmd *kingpin.CmdClause, f *campaignReportFlags) (reportName, compareName string) {
	r := cmd.Command("report", "Print what the runs in a campaign's folder come to, as Markdown; of an unfinished one so far.")
	r.Flag("json", "Print JSON.").BoolVar(&f.json)
	r.Arg("dir", "The campaign's folder: --out of the runs.").Required().StringVar(&f.dir)
	c := cmd.Command("compare", "Print what changed from one campaign to another, condition by condition, as Markdown.")
	c.Flag("json", "Print JSON.").BoolVar(&f.json)
	c.Arg("dir_a", "The first campaign's folder.").Required().StringVar(&f.a)
	c.Arg("dir_b", "The second campaign's folder.").Required().StringVar(&f.b)
	return r.FullCommand(), c.FullCommand()
}

// campaignReportCommand exits 1 when the folder cannot be read or used. Whether
// a criterion was met is a result, not an error.
func campaignReportCommand(f campaignReportFlags, stdout, stderr io.Writer) int {
	res, err := loadCampaign(f.dir, stderr)
	if err != nil {
		return campaignFailed("report", err, stderr)
	}
	return printCampaign("report", f.json, res, res.Markdown(folder.Drawings(f.dir)...), stdout, stderr)
}

// campaignCompareCommand exits 1 when the two cannot be read or compared.
func campaignCompareCommand(f campaignReportFlags, stdout, stderr io.Writer) int {
	a, err := loadCampaign(f.a, stderr)
	if err != nil {
		return campaignFailed("compare", err, stderr)
	}
	b, err := loadCampaign(f.b, stderr)
	if err != nil {
		return campaignFailed("compare", err, stderr)
	}
	c, err := campaign.Compare(a, b)
	if err != nil {
		return campaignFailed("compare", err, stderr)
	}
	return printCampaign("compare", f.json, c, c.Markdown(), stdout, stderr)
}

func loadCampaign(dir string, stderr io.Writer) (*campaign.Results, error) {
	res, err := folder.Load(dir)
	if err == nil && res.Cut {
		fmt.Fprintf(stderr, "%s: the last record was cut off and is left out\n", dir)
	}
	return res, err
}

func printCampaign(form string, asJSON bool, value any, markdown []byte, stdout, stderr io.Writer) int {
	var err error
	if asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", " ")
		err = enc.Encode(value)
	} else {
		_, err = stdout.Write(markdown)
	}
	if err != nil {
		return campaignFailed(form, err, stderr)
	}
	return exitOK
}

func campaignFailed(form string, err error, stderr io.Writer) int {
	fmt.Fprintf(stderr, "grayfail_exporter campaign %s: %v\n", form, err)
	return exitFail
}
