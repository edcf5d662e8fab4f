package dashboards_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/dashboards.md anew")

const referenceHead = `# Dashboards

Made from the dashboards and their tests; a test fails when it differs. Import the files of ` + "`dashboards/`" + ` into Grafana, or provision the folder. They find each other by the tag grayfail. The variable "Runbooks at" says where you serve the folder ` + "`alerts/runbooks`" + `; episodes are marked on every graph.

Each query below runs in a test against Debian's Prometheus, with everything selected, in three states:

| state | what feeds it |
|---|---|
| healthy | real llama.cpp over two RPC workers, one exporter at the coordinator, one at a worker |
| lossy | the same, while 5% of that worker's replies are dropped |
| fallback | a coordinator with two legs on a device of two RDMA ports, one of them fallen back to TCP. The readings of the kernel and of the engine are made up; the join, the detector, the metrics and Prometheus are the real ones |

some: it returns series. none: it returns none, and that is right. either: it depends on when, or on what kernel, one looks.
`

func TestReference(t *testing.T) {
	var out bytes.Buffer
	out.WriteString(referenceHead)
	words := map[byte]string{'s': "some", '-': "none", '?': "either"}
	titles := make(map[string]dashboard)
	for _, d := range dashboards(t) {
		titles[d.file] = d
	}
	file := ""
	queries(t, func(_ string, p panel, q target) {
		if p.file != file {
			file = p.file
			fmt.Fprintf(&out, "\n## %s\n\n`%s`. %s\n\n| panel | query | healthy | lossy | fallback |\n|---|---|---|---|---|\n", titles[file].Title, file, titles[file].Description)
		}
		name := p.Title
		if len(p.Targets) > 1 {
			name += " (" + q.RefID + ")"
		}
		want := promised(p.file, p.Title, q.RefID)
		fmt.Fprintf(&out, "| %s | `%s` | %s | %s | %s |\n", name, strings.ReplaceAll(q.Expr, "|", `\|`), words[want[0]], words[want[1]], words[want[2]])
	})
	const path = "../docs/dashboards.md"
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, out.Bytes()) {
		t.Errorf("%s differs from the dashboards: go test ./dashboards -run TestReference -update", path)
	}
}
