package measure

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"grayfail/lab"
)

// Options say what is compared and where.
type Options struct {
	// Exporter is our binary.
	Exporter string
	// NodeExporters are binaries of node_exporter, by the name they get in the
	// report.
	NodeExporters []Named
	// Rounds of each measurement; one a second.
	Rounds int
	// Pairs of token rates, with the exporter and without.
	Pairs int
	Log   io.Writer
}

// Named is a program with the name that the report gives it.
type Named struct{ Name, Path string }

// instance of the lab; one cost run at a time.
const instance = "cost"

// room is an empty lab: namespaces and no engine.
func room(ctx context.Context, o Options) (*lab.Cluster, error) {
	return lab.Start(ctx, lab.Options{Instance: instance, Engine: lab.EngineNone, Fair: true, Log: o.Log})
}

// subject is a program that serves /metrics in the room.
type subject struct {
	name string
	url  string
	*lab.Process
}

const firstPort = 19000

// spawn starts a program with the flag that says where it listens, and waits
// until it answers.
func spawn(ctx context.Context, c *lab.Cluster, number int, name, path string, args ...string) (*subject, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", firstPort+number)
	p, err := c.Spawn(lab.Command{
		Name: fmt.Sprintf("subject-%d", number), Argv: append([]string{path, "--web.listen-address=" + addr}, args...),
	})
	if err != nil {
		return nil, err
	}
	s := &subject{name, "http://" + addr + "/metrics", p}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return s, p.WaitFor(ctx, "it was scraped", func(ctx context.Context) error { return c.Get(ctx, s.url) })
}

// exporter starts ours in the room with a configuration.
func exporter(ctx context.Context, c *lab.Cluster, o Options, number int, config string, args ...string) (*subject, error) {
	file := filepath.Join(c.RunDir, fmt.Sprintf("config-%d.yml", number))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	s, err := spawn(ctx, c, number, "grayfail_exporter", o.Exporter, append([]string{"--config.file=" + file}, args...)...)
	if err != nil {
		return nil, err
	}
	ready := fmt.Sprintf("http://127.0.0.1:%d/-/ready", firstPort+number)
	return s, s.WaitFor(ctx, "it was ready", func(ctx context.Context) error { return c.Get(ctx, ready) })
}

// answer to one scrape.
type answer struct {
	took time.Duration
	body []byte // as sent: gzip, unless plain
}

// scrape asks once, as Prometheus does unless plain.
func scrape(ctx context.Context, client *http.Client, url string, plain bool) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return a, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	req.Header.Set("Accept-Encoding", "gzip")
	if plain {
		req.Header.Set("Accept-Encoding", "identity")
	}
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.body, err = io.ReadAll(resp.Body)
	a.took = time.Since(start)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return a, err
}

// quantile by the nearest rank; all is sorted.
func quantile(all []time.Duration, q float64) time.Duration {
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

func millis(d time.Duration) float64 { return float64(d) / 1e6 }
