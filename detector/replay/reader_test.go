package replay_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/detector"
	"grayfail/detector/replay"
)

// Records of the far future, wherever they are, change nothing for the others
// and are bad lines with their numbers.
func TestRecordFromTheFuture(t *testing.T) {
	lines := load(t, "loss5_fromB")
	want := run(t, lines).Requests
	future := []string{
		`{"type":"exchange","time_ns":4000000000000000000,"leg":"rpc-b","duration_ns":1000}`,
		`{"type":"exchange","time_ns":9000000000000000000,"leg":"rpc-b","duration_ns":1000}`,
		`{"type":"exchange","time_ns":%d,"leg":"rpc-b","duration_ns":30000000000000000}`, // a year
		`{"model":"m","id":"future","start_ns":%d,"end_ns":4000000000000000000,"generated_tokens":32,"decode_tokens_per_second":10}`,
		`{"type":"retransmit","time_ns":4000000000000000000,"leg":"rpc-b","kind":"rto","side":"coordinator"}`,
		`{"type":"leg","time_ns":4000000000000000000,"leg":"rpc-b","transport":"tcp","reason":""}`,
	}
	first := want[0].StartNS
	for _, at := range []int{0, 1, 40, len(lines) / 2, len(lines) - 20} {
		for _, f := range future {
			if strings.Contains(f, "%d") {
				f = fmt.Sprintf(f, first)
			}
			all := append(append(append([]string{}, lines[:at]...), "not json", f, f, "not json either"), lines[at:]...)
			res := run(t, all)
			if diff := cmp.Diff(want, res.Requests); diff != "" {
				t.Fatalf("%s before line %d: %s", f, at, diff)
			}
			var numbers []int
			for _, bad := range res.Bad {
				numbers = append(numbers, bad.Line-at)
			}
			if diff := cmp.Diff([]int{1, 2, 3, 4}, numbers); diff != "" || res.BadLines != 4 {
				t.Fatalf("%s before line %d: %v", f, at, res.Bad)
			}
		}
	}
}

// A night without requests is no error, nor is a single record after it.
func TestLongPause(t *testing.T) {
	text := requests(20, 100)
	text += strings.ReplaceAll(requests(1, 100), "18", "19")
	text += strings.ReplaceAll(requests(20, 100), `"end_ns":1`, `"end_ns":2`)
	res, err := replay.Run(detector.DefaultConfig(), input("in", text))
	if err != nil || res.BadLines != 0 || len(res.Requests) != 2*41 {
		t.Errorf("%d bad lines %v, %d rows, error %v; want 0, 82", res.BadLines, res.Bad, len(res.Requests), err)
	}
}

// A request without an id is called by its line.
func TestRequestWithoutID(t *testing.T) {
	const noID = `{"model":"m","end_ns":1800000000000000000,"generated_tokens":32,"decode_tokens_per_second":9}`
	res := run(t, []string{noID, "", "bad", noID})
	var ids []string
	for _, row := range res.Requests {
		ids = append(ids, row.ID)
	}
	if diff := cmp.Diff([]string{"line-1", "line-1", "line-4", "line-4"}, ids); diff != "" {
		t.Error(diff)
	}
}

// One input of several that cannot be opened is named, and the others are read.
func TestTogetherWithoutOne(t *testing.T) {
	lost := errors.New("no such file")
	missing := replay.Input{Name: "missing", Open: func() (io.ReadCloser, error) { return nil, lost }}
	res, err := replay.Run(detector.DefaultConfig(), missing, input("in", requests(12, 100)), input("zip", "\x1f\x8b\x08"))
	if err != nil || len(res.Requests) != 24 {
		t.Fatalf("%d rows, error %v; want 24", len(res.Requests), err)
	}
	if len(res.Bad) != 2 || res.BadLines != 2 || res.Bad[0].File != "missing" || !errors.Is(res.Bad[0], lost) || res.Bad[1].File != "zip" {
		t.Errorf("bad %v, want both by name", res.Bad)
	}
	if _, err := replay.Run(detector.DefaultConfig(), missing, input("empty", "")); !errors.Is(err, lost) {
		t.Errorf("error %v, want the one of opening", err)
	}
}

// What can be read once only says so.
func TestReadableOnce(t *testing.T) {
	text := strings.NewReader(requests(12, 100))
	once := replay.Input{Name: "once", Open: func() (io.ReadCloser, error) { return io.NopCloser(text), nil }}
	if res, err := replay.Run(detector.DefaultConfig(), once); !errors.Is(err, replay.ErrOnce) || res.Records != 0 {
		t.Errorf("a reader: %d records, error %v", res.Records, err)
	}
}
