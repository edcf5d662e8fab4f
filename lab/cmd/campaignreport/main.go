// Command campaignreport draws a campaign's distributions into its folder and
// writes the report that shows them. It is a program of its own because its
// plotting library would add half to the exporter's size.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/alecthomas/kingpin/v2"

	"grayfail/internal/atomicfile"
	"grayfail/lab/campaign/folder"
	"grayfail/lab/campaign/plots"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("campaignreport", "Writes report.md, strip.svg, ecdf.svg and both as PNG into a campaign's folder, and prints the table.")
	terminated := -1
	app.UsageWriter(stdout).ErrorWriter(stderr).Terminate(func(code int) { terminated = max(terminated, code) })
	dir := app.Arg("dir", "The campaign's folder.").Required().String()
	if _, err := app.Parse(args); terminated >= 0 {
		return terminated
	} else if err != nil {
		fmt.Fprintln(stderr, "campaignreport:", err)
		return 2
	}
	if err := write(*dir, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "campaignreport:", err)
		return 1
	}
	return 0
}

func write(dir string, stdout, stderr io.Writer) error {
	res, err := folder.Load(dir)
	if err != nil {
		return err
	}
	files, err := plots.Draw(res)
	switch {
	case errors.Is(err, plots.ErrNothing), errors.Is(err, plots.ErrTooMany):
		fmt.Fprintf(stderr, "campaignreport: not drawn: %v\n", err) // the tables say all there is
	case err != nil:
		return err
	}
	for _, f := range files {
		if err := atomicfile.Write(filepath.Join(dir, f.Name), f.Data); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, folder.Report)
	if err := atomicfile.Write(path, res.Markdown(folder.Drawings(dir)...)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\nwritten: %s and %d drawings beside it\n", res.Summary(), path, len(files))
	return err
}
