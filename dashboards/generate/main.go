// Command generate writes the Grafana dashboards as JSON.
//
// In: the panels described here, in Go. Out: one file a dashboard in the
// folder that -out names. The same source gives the same bytes, so that a
// check can regenerate and compare.
//
// It is a module of its own: Grafana's SDK must neither move nor weigh on the
// exporter's dependencies.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", ".", "folder for the JSON files")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	for name, builder := range map[string]*dashboard.DashboardBuilder{
		"grayfail-overview.json": overview(),
		"grayfail-requests.json": requestsBoard(),
		"grayfail-legs.json":     legsBoard(),
		"grayfail-fleet.json":    fleetBoard(),
	} {
		if err := write(filepath.Join(*out, name), builder); err != nil {
			fmt.Fprintf(stderr, "generate: %s: %v\n", name, err)
			return 1
		}
	}
	return 0
}

func write(path string, builder *dashboard.DashboardBuilder) error {
	d, err := builder.Build()
	if err != nil {
		return err
	}
	for i := range d.Panels { // numbers that stay, so that links to panels do
		id := uint32(i + 1)
		if p := d.Panels[i].Panel; p != nil {
			p.Id = &id
		} else {
			d.Panels[i].RowPanel.Id = id
		}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
