package report

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"grayfail/detector"
	"grayfail/detector/replay"
	"grayfail/event"
)

const (
	recordedControl = "baseline"
	recordedLoss    = "loss5_replies_of_b"
)

// recorded makes runs of a recording of the real llama.cpp: what the detector
// says about each request, and the retransmits that both hosts' kernels counted
// while it ran. Ten blocks: the recording has the control's requests first.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("..", "..", "..", "detector", "testdata", "recordings", name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	found, err := replay.Run(detector.DefaultConfig(), replay.Input{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]event.Row)
	for _, row := range found.Requests {
		if row.Phase == event.PhaseDecode {
			rows[row.ID] = row
		}
	}
	var requests []event.Request
	var resent []event.Retransmit
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		record, err := event.ParseRecord(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		switch r := record.(type) {
		case *event.Request:
			requests = append(requests, *r)
		case *event.Retransmit:
			resent = append(resent, *r)
		}
	}
	var out bytes.Buffer
	at := make(map[string]int)
	for i, r := range requests {
		row := rows[r.ID]
		run := Run{
			Version: RunVersion, SpecHash: "sha256:" + name, Run: i + 1, Block: at[r.Condition] % 10, Position: i / 10, Condition: r.Condition,
			Repeat: at[r.Condition], Started: time.Unix(0, r.StartNS).UTC(), Ended: time.Unix(0, r.EndNS).UTC(), Valid: true,
			Request: &Request{
				Outcome: r.Outcome, Latency: ptr(float64(r.EndNS-r.StartNS) / 1e9), TTFT: ptr(float64(r.FirstTokenNS-r.StartNS) / 1e9),
				Tokens: ptr(r.GeneratedTokens), Decode: row.Rate, Prefill: ptr(r.PrefillRate), Verdict: row.Verdict,
				NamedLeg: row.Leg, Cause: row.Cause,
			},
			TCP: &TCP{Retransmits: new(uint64), RTO: new(uint64)},
		}
		if row.R != nil {
			run.Request.Relative = ptr(math.Round(*row.R*1e4) / 1e4)
		}
		if row.Verdict == event.VerdictSlow {
			run.Request.Excess = ptr(row.ExcessMS / 1000)
		}
		for _, s := range resent {
			if s.TimeNS >= r.StartNS && s.TimeNS <= r.EndNS {
				*run.TCP.Retransmits++
				if s.Kind == event.RetransmitRTO {
					*run.TCP.RTO++
				}
			}
		}
		at[r.Condition]++
		line, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

// method that fits the recordings.
func recordedMethod(name string) Method {
	return Method{
		Name: name, Question: "What do 5% of lost replies of one worker do to a request?",
		SpecHash: "sha256:" + name, OrderSeed: 1, Blocks: 10, SlowBelow: 0.5,
		Conditions: []string{recordedControl, recordedLoss}, Control: recordedControl,
		Criteria: []Criterion{{Condition: recordedLoss, Evidence: Retransmits, Op: "<=", Rho: -0.40}},
		Details:  []string{"llama.cpp with two RPC workers, 32 tokens a request, one at a time."},
	}
}

// The published table's form over a real engine under real loss: what is true
// of the recording is known (9 of 20 slow, all of rpc-b, all of loss).
func TestRecorded(t *testing.T) {
	data := recorded(t, "loss5_fromB")
	golden(t, "recorded/runs.jsonl", data)
	runs, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	res := analysed(t, recordedMethod("loss5_fromB"), runs)
	golden(t, "recorded/summary.txt", []byte(res.Summary()))
	loss := res.Table[1]
	if loss.Requests != 20 || loss.Slow != 9 || loss.Failed != 0 || loss.Unknown != 0 {
		t.Errorf("%+v, want 9 of 20 slow and none failed", loss)
	}
	if n := res.Naming[1]; len(n.Legs) != 1 || n.Legs[0] != (Count{"rpc-b", 9}) || n.Causes[0] != (Count{"loss", 9}) {
		t.Errorf("%+v, want rpc-b and loss for all 9", n)
	}
	if s := res.Timeouts[1]; s.Slow.With+s.Slow.Without != 9 || s.Slow.With < s.Slow.Without {
		t.Errorf("%+v, want most of the slow ones with a timeout", s)
	}
	t.Logf("\n%s\n%s\n%s\n%s", res.normalizedTable(), res.timeoutTable(), res.namingTable(), res.correlationTable())
}
