// Command screenshots takes the pictures in docs/screenshots: the page at / in
// the states that an operator meets. All but one are of the real llama.cpp and
// the real exporter; "fallback" is of readings that are made up here, since
// only the virtual machine of lab/vm has RDMA, and no browser.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/chromedp/chromedp"

	"grayfail/event"
	"grayfail/lab"
	"grayfail/lab/browser"
	"grayfail/lab/trial"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("screenshots", "Pictures of the page at / in the states that an operator meets.").Terminate(nil)
	binary := app.Flag("exporter", "The exporter's binary.").Default("bin/grayfail_exporter").String()
	dir := app.Arg("dir", "Where the pictures go.").Default("docs/screenshots").String()
	if _, err := app.Parse(args); err != nil {
		fmt.Fprintln(stderr, "screenshots:", err)
		return 2
	}
	if err := take(ctx, *binary, *dir, stdout); err != nil {
		fmt.Fprintln(stderr, "screenshots:", err)
		return 1
	}
	return 0
}

// camera takes pictures of one page after another.
type camera struct {
	*browser.Browser
	dir string
	out io.Writer
}

// Widths of a desk and of a phone, in CSS pixels.
const (
	desk  = 1200
	phone = 400
)

// take shows the page at url and writes NAME.png.
func (c *camera) take(name, url string, width int64, dark bool) error {
	if err := c.Look(width, 900, dark); err != nil {
		return err
	}
	if err := c.Do(chromedp.Navigate(url), chromedp.WaitVisible("#live.on")); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	// The first second shows collectors that have not been tried.
	if err := c.Await(`!document.body.innerText.includes("Not tried yet")`); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	png, err := c.Picture()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	file := filepath.Join(c.dir, name+".png")
	fmt.Fprintf(c.out, "%s: %d bytes\n", file, len(png))
	return os.WriteFile(file, png, 0o644)
}

func take(ctx context.Context, binary, dir string, out io.Writer) (err error) {
	kind, err := lab.EngineFromEnv()
	if err != nil {
		return err
	}
	b, err := browser.Open(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	cam := &camera{b, dir, out}
	if err := fallbackPicture(cam); err != nil {
		return err
	}
	c, err := lab.Start(ctx, lab.Options{Instance: "shots", Engine: kind, Log: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := blindPicture(ctx, cam, c, binary); err != nil {
		return err
	}
	e, err := trial.StartExporter(ctx, c, trial.ExporterOptions{Binary: binary})
	if err != nil {
		return err
	}
	addr, err := c.Forward("127.0.0.1:0", e.Addr)
	if err != nil {
		return err
	}
	page := "http://" + addr + "/"
	if err := cam.take("first-run", page, desk, false); err != nil {
		return err
	}
	if err := requests(ctx, c, e, 40); err != nil {
		return err
	}
	if err := cam.take("healthy", page, desk, false); err != nil {
		return err
	}
	loss, err := c.NewLoss(lab.LegB, lab.Replies, 5)
	if err != nil {
		return err
	}
	if err := c.Inject(ctx, loss); err != nil {
		return err
	}
	if err := requests(ctx, c, e, 20); err != nil {
		return err
	}
	if err := cam.take("loss", page, desk, false); err != nil {
		return err
	}
	if err := cam.take("loss-phone-dark", page, phone, true); err != nil {
		return err
	}
	acted, err := c.Eject(loss)
	fmt.Fprintln(out, acted)
	return err
}

// requests sends n and waits until all are judged.
func requests(ctx context.Context, c *lab.Cluster, e *trial.Exporter, n int) error {
	before, err := e.Rows(ctx, event.PhaseDecode)
	if err != nil {
		return err
	}
	for range n {
		if a := c.Request(ctx, lab.RequestOptions{URL: e.ProxyURL()}); a.Err != nil {
			return a.Err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err = e.AwaitRows(ctx, event.PhaseDecode, len(before)+n)
	return err
}

// blindPicture is of an exporter that was given no capability.
func blindPicture(ctx context.Context, cam *camera, c *lab.Cluster, binary string) error {
	const inside = "127.0.0.1:10559"
	p, err := c.Spawn(lab.Command{Name: "blind", Namespace: c.Coordinator, Argv: []string{
		"setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", binary, "serve", "--web.listen-address=" + inside,
	}})
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := p.WaitFor(wait, "it was ready", func(ctx context.Context) error { return c.Get(ctx, "http://"+inside+"/-/ready") }); err != nil {
		return err
	}
	addr, err := c.Forward("127.0.0.1:0", inside)
	if err != nil {
		return err
	}
	return cam.take("collectors-down", "http://"+addr+"/", desk, false)
}
