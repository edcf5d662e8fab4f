package httploss

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"grayfail/event"
)

// quantile by nearest rank; 0 of nothing.
func quantile(took []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// stage is the mean of one stage.
func (c *Cell) stage(s event.HTTPStage) time.Duration {
	if c.Counted == 0 {
		return 0
	}
	return c.Stages[s] / time.Duration(c.Counted)
}

// grown names the stage whose mean grew most over that without loss.
func (c *Cell) grown(base *Cell) (which event.HTTPStage, by time.Duration) {
	for _, s := range event.HTTPStageNames {
		if d := c.stage(s) - base.stage(s); d > by {
			which, by = s, d
		}
	}
	return which, by
}

// Page is docs/http-loss.md. The first cell of each size is that without loss.
func Page(cells []*Cell, machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What packet loss does to answers, by their size\n\nMade by `go run ./lab/cmd/httploss` (as root) in one run. %s.\n\n", machine)
	b.WriteString("| answer | loss | dropped | requests | median | p90 | times that without loss | stage that grew most, mean | past the proxy, connection kept: median | p90 | times |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	var base *Cell
	for _, c := range cells {
		if base == nil || c.Size != base.Size {
			base = c
		}
		dropped := "-"
		if c.Packets > 0 {
			dropped = fmt.Sprintf("%d of %d packets", c.Dropped, c.Packets)
		}
		grew := "-"
		if s, by := c.grown(base); c != base && by >= time.Millisecond/2 {
			grew = fmt.Sprintf("%s, by %s", s, millis(by))
		}
		fmt.Fprintf(&b, "| %d kB | %g%% | %s | %d | %s | %s | %.1f | %s | %s | %s | %.1f |\n", c.Size/1000, c.Loss, dropped, len(c.Took),
			millis(quantile(c.Took, 0.5)), millis(quantile(c.Took, 0.9)), float64(quantile(c.Took, 0.5))/float64(quantile(base.Took, 0.5)), grew,
			millis(quantile(c.Kept, 0.5)), millis(quantile(c.Kept, 0.9)), float64(quantile(c.Kept, 0.5))/float64(quantile(base.Kept, 0.5)))
	}
	fmt.Fprintf(&b, method, RTT.Milliseconds(), Rate/1_000_000)
	return b.String()
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

const method = `
## Method

Client and exporter are in one network namespace, the server in another; between them %d ms of round-trip time (the lab's packet relay) and %d Mbit/s (tbf). An answer is a completion padded to its size; the server computes nothing. Segments of the answers are dropped where they arrive (nftables, counted). Congestion control is cubic, the kernel's default settings otherwise. The proxy opens a connection for each call, as the exporter always does: one round trip for the handshake, and each answer begins with the initial window of ten segments. Groups of three requests of all sizes and losses are shuffled within each block. Times are the client's; stages are the exporter's own measure (grayfail_request_http_stage_seconds), as the mean over the same requests.

## What it says

Loss of one segment in a thousand changes nothing that the medians show. An answer of one segment, or of the ten that may be in flight at first, is rarely touched by one in a hundred either; where it is, the call waits for a timeout, of a second if the handshake was hit (connect), else of 200 ms. A large answer is some 160 segments: at 1%% most of its calls lose at least one. The kernel here (RACK, fast recovery) mends most of that within a round trip or two, so the median grows less than the mean and the p90, which have the calls that waited for a timeout in them. The stage that grows is read, the time from the first byte of the answer to its last; the engine's own part, first_byte, does not move. So where grayfail_request_http_stage_seconds grows in read, and the answers are large and whole, look at the network between proxy and engine and not at the engine.

The field's figures for 227 kB on such a path are 22 ms without loss, 170 ms at 1%% and 190 ms at 2%%: the first is as here on a connection that is kept, the others are those of the slowest tenth here.
`
