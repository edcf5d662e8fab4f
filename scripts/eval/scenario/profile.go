package scenario

import (
	"compress/gzip"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bufio"

	"grayfail/event"
)

// turn is one recorded exchange without fault.
type turn struct {
	duration, first, ack, stall, rtt time.Duration
	dsacks, retransmits              uint32
}

// kind is one exchange that a token needs on a leg, with all that were
// recorded of it.
type kind struct {
	request, reply uint64
	pool           []turn
}

// mark is what the loss of reply packets left in one exchange: what it took
// more than the median of its kind, and the traces.
type mark struct {
	duration, first, ack, stall time.Duration
	outOfOrder                  uint32
}

// marks of one size of reply. share of the exchanges had one at 5% loss.
type marks struct {
	share float64
	pool  []mark
}

// profile is one generation of the engine as it was recorded.
type profile struct {
	name string
	// inner are the exchanges of a token on each leg but the last, last those
	// on the last one, which returns the logits.
	inner, last []*kind
	local       []time.Duration // of a token on no leg
	// row is what a further token adds to a request for computation.
	row uint64
}

// Recordings are the distributions that timelines draw from.
type Recordings struct {
	profiles []*profile
	lost     map[int]*marks // by sizeOf the reply
}

// recording is one file, in memory.
type recording struct {
	requests  []*event.Request
	exchanges []*event.Exchange
}

func load(path string) (*recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out recording
	scanner := bufio.NewScanner(plain)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		rec, err := event.ParseRecord(scanner.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		switch x := rec.(type) {
		case *event.Request:
			out.requests = append(out.requests, x)
		case *event.Exchange:
			out.exchanges = append(out.exchanges, x)
		}
	}
	return &out, scanner.Err()
}

// during returns the exchanges sent while a request of a condition with this
// prefix ran; of requests that overlap, once each.
func (r *recording) during(prefix string) (out []*event.Exchange) {
	for _, e := range r.exchanges {
		if slices.ContainsFunc(r.requests, func(q *event.Request) bool {
			return strings.HasPrefix(q.Condition, prefix) && e.SendNS >= q.StartNS && e.SendNS < q.EndNS
		}) {
			out = append(out, e)
		}
	}
	return out
}

// size of an exchange in powers of two, as the detector classes them.
type size struct{ request, reply int }

func sizeOf(e *event.Exchange) size {
	return size{bits.Len64(e.RequestBytes), bits.Len64(e.ReplyBytes)}
}

// replySize groups replies by how many packets can be lost: one segment, a few,
// many.
func replySize(bytes uint64) int {
	switch {
	case bytes < 1448:
		return 0
	case bytes < 64<<10:
		return 1
	}
	return 2
}

// Read takes the distributions from a folder of recordings.
func Read(folder string) (*Recordings, error) {
	all := make(map[string]*recording)
	for _, name := range []string{"noise", "v070_loss5_fromB", "loss5_fromB", "conc2_lossB"} {
		r, err := load(filepath.Join(folder, name+".jsonl.gz"))
		if err != nil {
			return nil, err
		}
		all[name] = r
	}
	out := &Recordings{lost: make(map[int]*marks)}
	for _, p := range []struct {
		name, file  string
		row         uint64
		inner, last []kind
	}{
		// What a token needs was read off the recordings: llama.cpp b7099 asks
		// a worker to compute and fetches the result, 0.7.0 does it in one. A
		// row of hidden state takes 2048 bytes; a prompt of 36 tokens 202,310
		// where one takes 6,466.
		{"three exchanges a token (b7099)", "noise", 2048,
			[]kind{{request: 163990, reply: 9}, {request: 321, reply: 2056}, {request: 321, reply: 32776}},
			[]kind{{request: 107067, reply: 9}, {request: 321, reply: 128008}}},
		{"one exchange a token (0.7.0)", "v070_loss5_fromB", 5600,
			[]kind{{request: 6466, reply: 1032}}, []kind{{request: 3786, reply: 128008}}},
	} {
		made, err := newProfile(p.name, all[p.file], p.inner, p.last)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		made.row = p.row
		out.profiles = append(out.profiles, made)
	}
	for _, name := range []string{"loss5_fromB", "v070_loss5_fromB", "conc2_lossB"} {
		out.learnLoss(all[name])
	}
	for i := range 3 {
		if out.lost[i] == nil || len(out.lost[i].pool) == 0 {
			return nil, fmt.Errorf("no marks of loss for replies of size %d", i)
		}
	}
	return out, nil
}

func newProfile(name string, r *recording, inner, last []kind) (*profile, error) {
	p := &profile{name: name}
	exchanges := r.during("baseline")
	fill := func(leg string, kinds []kind) ([]*kind, error) {
		var out []*kind
		for _, k := range kinds {
			for _, e := range exchanges {
				if e.Leg == leg && e.RequestBytes == k.request && e.ReplyBytes == k.reply && e.OutOfOrder == 0 {
					k.pool = append(k.pool, turn{e.Duration, e.FirstByte, e.Ack, e.Stall, e.RTT, e.DSACKs, e.Retransmits})
				}
			}
			if len(k.pool) < 50 {
				return nil, fmt.Errorf("only %d exchanges of %d/%d bytes on %s", len(k.pool), k.request, k.reply, leg)
			}
			out = append(out, &k)
		}
		return out, nil
	}
	var err error
	if p.inner, err = fill("rpc-a", inner); err != nil {
		return nil, err
	}
	if p.last, err = fill("rpc-b", last); err != nil {
		return nil, err
	}
	for _, q := range r.requests {
		if !strings.HasPrefix(q.Condition, "baseline") || q.GeneratedTokens < 8 {
			continue
		}
		local := time.Duration(q.EndNS - q.FirstTokenNS)
		for _, e := range r.exchanges {
			if e.SendNS >= q.FirstTokenNS && e.SendNS < q.EndNS {
				local -= e.Duration
			}
		}
		p.local = append(p.local, max(0, local)/time.Duration(q.GeneratedTokens))
	}
	return p, nil
}

// Beyond these an exchange on the lossy leg counts as marked: without loss one
// exchange in a thousand has such a gap or such a late first byte.
const (
	markGap   = 8 * time.Millisecond
	markFirst = 11 * time.Millisecond
)

// learnLoss collects the marks that 5% loss of worker B's replies left.
func (r *Recordings) learnLoss(rec *recording) {
	before := rec.during("baseline")
	usual := make(map[size]turn)
	groups := make(map[size][]*event.Exchange)
	for _, e := range before {
		if e.Leg == "rpc-b" {
			groups[sizeOf(e)] = append(groups[sizeOf(e)], e)
		}
	}
	for s, es := range groups {
		usual[s] = turn{
			duration: middle(es, func(e *event.Exchange) time.Duration { return e.Duration }),
			first:    middle(es, func(e *event.Exchange) time.Duration { return e.FirstByte }),
			ack:      middle(es, func(e *event.Exchange) time.Duration { return e.Ack }),
		}
	}
	seen, marked := make(map[int]int), make(map[int][]mark)
	during := rec.during("loss5")
	for _, e := range during {
		u, ok := usual[sizeOf(e)]
		if e.Leg != "rpc-b" || !ok {
			continue
		}
		i := replySize(e.ReplyBytes)
		seen[i]++
		if e.OutOfOrder > 0 || e.Stall >= markGap || e.FirstByte-u.first >= markFirst {
			marked[i] = append(marked[i], mark{
				duration: max(0, e.Duration-u.duration), first: max(0, e.FirstByte-u.first), ack: max(0, e.Ack-u.ack),
				stall: e.Stall, outOfOrder: e.OutOfOrder,
			})
		}
	}
	for i, pool := range marked {
		m := r.lost[i]
		if m == nil {
			m = &marks{}
			r.lost[i] = m
		}
		// The shares of the files are close; the mean of them is kept.
		total := float64(len(m.pool))/max(m.share, 1e-9) + float64(seen[i])
		if len(m.pool) == 0 {
			total = float64(seen[i])
		}
		m.pool = append(m.pool, pool...)
		m.share = float64(len(m.pool)) / total
	}
}

func middle(es []*event.Exchange, of func(*event.Exchange) time.Duration) time.Duration {
	var v []time.Duration
	for _, e := range es {
		v = append(v, of(e))
	}
	slices.Sort(v)
	return v[len(v)/2]
}
