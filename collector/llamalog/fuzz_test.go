package llamalog

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

// FuzzParser: no log crashes the parser, makes a request that cannot be, or
// says something else in other pieces.
func FuzzParser(f *testing.F) {
	for _, name := range fixtures(f) {
		log := fixture(f, name)
		f.Add(log, 7)
		f.Add(log[:len(log)/2], 300)
	}
	f.Add([]byte("__CURSOR=1\nMESSAGE\n\x05\x00\x00\x00\x00\x00\x00\x00hello\n\n"), 3)
	f.Add([]byte(`{"MESSAGE":[1,2,999],"__REALTIME_TIMESTAMP":"9223372036854775807"}`+"\n"), 1)
	f.Add([]byte("[0] 99999999999.00.000.000 I slot x: id 0 | task 9223372036854775807 |\n"), 1)
	f.Fuzz(func(t *testing.T, log []byte, size int) {
		want, _ := whole(log)
		for _, r := range want {
			checkTimes(t, "fuzz", r)
		}
		size = max(1, min(size, 1<<16))
		p := NewParser(Config{Name: "log"}, true)
		var got []event.Request
		for piece := range slices.Chunk(log, size) {
			got = append(got, p.Feed(piece, arrived)...)
		}
		got = append(got, p.Close(arrived)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("pieces of %d (-want +got):\n%s", size, diff)
		}
		if len(p.streams) > maxStreams || len(p.inner) > 8 {
			t.Fatalf("%d streams, %d buffers", len(p.streams), len(p.inner))
		}
		raw, err := json.Marshal(p.snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := NewParser(Config{}, false).restore(raw); err != nil {
			t.Fatalf("own snapshot refused: %v\n%s", err, raw)
		}
	})
}

// FuzzState: no state of a former run makes the parser crash.
func FuzzState(f *testing.F) {
	for _, name := range []string{"llama.cpp-0.7.0-b11669/server-router.log", "composed/server-headers-then-numbers.log"} {
		log := fixture(f, name)
		for _, cut := range []int{len(log) / 3, len(log) / 2, len(log) - 100} {
			p := NewParser(Config{Name: "log"}, true)
			p.Feed(log[:cut], arrived)
			parser, err := json.Marshal(p.snapshot())
			if err != nil {
				f.Fatal(err)
			}
			raw, err := json.Marshal(state{Version: stateVersion, Path: "/x", Offset: 3, SavedNS: arrived, Parser: parser})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(raw, log[cut:])
		}
	}
	f.Fuzz(func(t *testing.T, raw, log []byte) {
		s, err := parseState(raw)
		if err != nil {
			return
		}
		p := NewParser(Config{Name: "log"}, false)
		if p.restore(s.Parser) != nil {
			return
		}
		for _, r := range append(p.Feed(log, arrived), p.Close(arrived)...) {
			if r.ID == "" || r.Model == "" || r.DecodeRate < 0 || r.DecodeRate > maxRate {
				t.Fatalf("%+v", r)
			}
		}
	})
}
