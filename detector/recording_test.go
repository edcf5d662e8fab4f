package detector_test

import (
	"bufio"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"testing"

	"grayfail/detector"
	"grayfail/event"
)

// truth is what is true of a recording; replay's tests hold every row to it.
type truth struct {
	file  string
	slow  int
	cause event.Cause
	leg   string
}

var recordings = []truth{
	{file: "noise"},
	{file: "c1to2"},
	{file: "loss1_fromB", slow: 1}, // a busy machine: nothing may be named
	{file: "loss5_fromB", slow: 9, cause: event.CauseLoss, leg: "rpc-b"},
	{file: "delay50B", slow: 20, cause: event.CauseDelay, leg: "rpc-b"},
	{file: "slowB_quota15", slow: 20, cause: event.CausePeerHost, leg: "rpc-b"},
	{file: "slowC_quota3", slow: 20, cause: event.CauseLocal},
	{file: "conc2_lossB", slow: 16, cause: event.CauseLoss, leg: "rpc-b"},
	{file: "v070_loss5_fromB", slow: 11, cause: event.CauseLoss, leg: "rpc-b"},
	{file: "tbf20_1mb", slow: 10, cause: event.CauseDelay, leg: "rpc-b"},
}

// parse reads the records of a recording.
func parse(t testing.TB, name string) []event.Record {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "recordings", name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []event.Record
	lines := bufio.NewScanner(unzipped)
	for lines.Scan() {
		rec, err := event.ParseRecord(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
	if lines.Err() != nil || len(out) == 0 {
		t.Fatalf("%s: %d records, %v", name, len(out), lines.Err())
	}
	return out
}

// copyOf gives records that can be changed.
func copyOf(in []event.Record) []event.Record {
	out := make([]event.Record, len(in))
	for i, rec := range in {
		switch x := rec.(type) {
		case *event.Request:
			c := *x
			out[i] = &c
		case *event.Exchange:
			c := *x
			out[i] = &c
		case *event.Retransmit:
			c := *x
			out[i] = &c
		}
	}
	return out
}

// play feeds records as they would come in live and returns the rows.
func play(cfg detector.Config, records []event.Record) []event.Row {
	d := detector.New(cfg)
	var rows []event.Row
	for _, rec := range records {
		rows = append(rows, d.Advance(knownAt(rec)).Rows...)
		give(d, rec)
	}
	return append(rows, d.Flush().Rows...)
}

func give(d *detector.Detector, rec event.Record) {
	switch x := rec.(type) {
	case *event.Request:
		d.Request(*x)
	case *event.Exchange:
		d.Exchange(*x)
	case *event.Retransmit:
		d.Retransmit(*x)
	case *event.Qdisc:
		d.Qdisc(*x)
	case *event.LegChange:
		d.Leg(*x)
	case *event.RDMAStep:
		d.RDMA(*x)
	case *event.Connection:
		d.Connection(*x)
	}
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
}

// slowRows checks each row and keeps the slow ones.
func slowRows(t tester, rows []event.Row) []event.Row {
	t.Helper()
	var out []event.Row
	for _, row := range rows {
		sum := row.LocalMS
		for _, ms := range row.LegsMS {
			sum += ms
		}
		if math.Abs(sum-row.ExcessMS) > 1e-9 {
			t.Errorf("%s: legs + local = %v, excess %v", row.ID, sum, row.ExcessMS)
		}
		if row.Cause.NamesPath() != (row.Leg != "") {
			t.Errorf("%s: cause %q with leg %q", row.ID, row.Cause, row.Leg)
		}
		if row.Verdict == event.VerdictOK && row.R == nil {
			t.Errorf("%s: ok without a baseline", row.ID)
		}
		if row.Verdict == event.VerdictSlow {
			out = append(out, row)
		}
	}
	return out
}

// knownAt orders records as a recorder would write them.
func knownAt(rec event.Record) int64 {
	switch x := rec.(type) {
	case *event.Request:
		return x.EndNS
	case *event.Exchange:
		return x.SendNS + int64(x.Duration)
	case *event.Retransmit:
		return x.TimeNS
	case *event.Qdisc:
		return x.TimeNS
	case *event.LegChange:
		return x.TimeNS
	case *event.RDMAStep:
		return x.TimeNS
	case *event.Connection:
		return x.EndNS
	}
	return 0
}
