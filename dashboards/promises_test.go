package dashboards_test

import (
	"strings"
	"testing"
)

// state is what the lab is in when the queries run.
type state int

const (
	healthy  state = iota // real llama.cpp over two RPC workers, nothing injected
	lossy                 // the same, 5% of the replies of one worker lost
	fellBack              // see fallback
	states
)

var stateNames = [states]string{"healthy", "lossy", "fallback"}

// promise is what a query returns in each state: s some series, - none, ? some
// or none, as it depends on when one looks.
type promise string

const everywhere promise = "sss"

// promises are those of the queries that do not return something everywhere:
// "dashboard: panel", or "dashboard: panel: query" where they differ.
var promises = map[string]promise{
	// Nothing is blamed before the first episode.
	"fleet: Annotation: Episodes":    "-ss",
	"legs: Annotation: Episodes":     "-ss",
	"overview: Annotation: Episodes": "-ss",
	"requests: Annotation: Episodes": "-ss",
	"overview: Episodes":             "-ss",
	"fleet: Legs named":              "-ss",
	"fleet: Legs named now":          "-ss",

	// The real cluster has no RDMA device.
	"legs: Fallbacks":                     "--s",
	"legs: RDMA ports down":               "--s",
	"legs: Queue pairs by state":          "--s",
	"legs: Port active":                   "--s",
	"legs: Link rate":                     "--s",
	"legs: Hardware events":               "--s",
	"legs: RDMA ports":                    "--s",
	"fleet: RDMA hardware events by host": "--s",

	// The coordinator in fallback is the only exporter, and all of it works.
	"fleet: Who is behind which leg":          "ss-",
	"fleet: Retransmits by host":              "ss-",
	"fleet: Named legs, as their peers count": "-s-",
	"fleet: Collectors down, and why":         "??-", // RDMA, where the kernel has none

	// Requests of a fraction of a second, looked at once a second.
	"requests: In flight":           "??s",
	"requests: In flight by source": "??s",
}

func promised(file, panel, ref string) promise {
	name := strings.TrimSuffix(strings.TrimPrefix(file, "grayfail-"), ".json")
	for _, key := range []string{name + ": " + panel + ": " + ref, name + ": " + panel} {
		if p, ok := promises[key]; ok {
			return p
		}
	}
	return everywhere
}

// A promise of a panel that was renamed would go unnoticed.
func TestPromisesAreOfPanels(t *testing.T) {
	used := make(map[string]bool)
	queries(t, func(_ string, p panel, q target) {
		name := strings.TrimSuffix(strings.TrimPrefix(p.file, "grayfail-"), ".json")
		used[name+": "+p.Title], used[name+": "+p.Title+": "+q.RefID] = true, true
	})
	for key, p := range promises {
		if !used[key] || len(p) != int(states) || strings.Trim(string(p), "s-?") != "" {
			t.Errorf("promise %q of %q", p, key)
		}
	}
}
