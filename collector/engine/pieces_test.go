package engine

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

// observe feeds a body in the given pieces, all at one time.
func (ex exchange) observe(ending Ending, pieces ...[]byte) event.Request {
	o := ex.open()
	for _, p := range pieces {
		o.ResponseBody(p, pieceNS(0))
	}
	return o.Finish(ending, pieceNS(0))
}

// TestAnyPieces: how the bytes are split into reads changes nothing.
func TestAnyPieces(t *testing.T) {
	for _, name := range names(t, fixtures) {
		t.Run(name, func(t *testing.T) {
			ex := load(t, fixtures, name)
			body := ex.body()
			want := ex.observe(EndedClean, body)
			if got := ex.observe(EndedClean, bytes.SplitAfter(body, nil)...); got != want {
				t.Errorf("byte by byte (-want +got):\n%s", cmp.Diff(want, got))
			}
			for i := 0; i < len(body); i += 1 + len(body)/512 {
				if got := ex.observe(EndedClean, body[:i], body[i:]); got != want {
					t.Fatalf("split at %d (-want +got):\n%s", i, cmp.Diff(want, got))
				}
			}
		})
	}
}

// wholeAt is from which byte on an answer is whole: the end of the document
// that ends its last choice. It is found by other means than the Observer's.
func wholeAt(body []byte, isStream bool) int {
	if !isStream {
		return len(bytes.TrimSpace(body))
	}
	last := 0
	for pos := 0; pos < len(body); {
		line, _, _ := bytes.Cut(body[pos:], []byte("\n"))
		var chunk struct {
			Stop    bool
			Choices []struct {
				FinishReason string `json:"finish_reason"`
			}
		}
		if payload, ok := bytes.CutPrefix(line, []byte("data: ")); ok && json.Unmarshal(payload, &chunk) == nil &&
			(chunk.Stop || len(chunk.Choices) > 0 && chunk.Choices[0].FinishReason != "") {
			last = pos + len(line)
		}
		pos += len(line) + 1
	}
	return last
}

// TestCutAnywhere: an answer that stops before it is whole is never ok,
// however politely the connection was closed; whole, it is.
func TestCutAnywhere(t *testing.T) {
	for _, name := range []string{
		"chat_stream", "chat_stream_usage", "chat_stream_progress", "chat_plain", "chat_n2_stream", "native_stream",
		"native_plain", "native_array_stream", "native_array_plain", "completions_stream", "completions_plain",
	} {
		t.Run(name, func(t *testing.T) {
			ex := load(t, fixtures, name)
			body := ex.body()
			whole := wholeAt(body, strings.Contains(name, "stream"))
			if whole == 0 {
				t.Fatal("the fixture has no end")
			}
			o := ex.open() // Finish may be asked again as more comes
			for i := range len(body) + 1 {
				want := event.OutcomeError
				if i >= whole {
					want = event.OutcomeOK
				}
				for _, ending := range []Ending{EndedClean, EndedCut} {
					if got := o.Finish(ending, pieceNS(0)).Outcome; got != want {
						t.Fatalf("cut at %d of %d (whole at %d), ending %d: %s, want %s", i, len(body), whole, ending, got, want)
					}
				}
				o.ResponseBody(body[i:min(i+1, len(body))], pieceNS(0))
			}
		})
	}
}

// TestNoGrowth: whatever comes, and however much of it, memory stays.
func TestNoGrowth(t *testing.T) {
	filler := bytes.Repeat([]byte("x"), 32<<10)
	for name, start := range map[string]string{
		"endless string":        `data: {"choices":[{"delta":{"content":"`,
		"endless model":         `data: {"model":"`,
		"endless key":           `data: {"`,
		"endless field name":    "",
		"endless comment":       ":",
		"endless number":        `data: {"timings":{"prompt_n":1`,
		"endless nesting":       "data: ",
		"endless error":         `data: {"error":{"message":"`,
		"endless plain payload": "data: ",
	} {
		t.Run(name, func(t *testing.T) {
			fill := filler
			switch name {
			case "endless nesting":
				fill = bytes.Repeat([]byte("["), 32<<10)
			case "endless number":
				fill = bytes.Repeat([]byte("1"), 32<<10)
			}
			ex := stream(events)
			o := ex.open()
			o.ResponseBody([]byte(start), 1)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 512 { // 16 MiB
				o.ResponseBody(fill, 1)
			}
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<10 {
				t.Errorf("allocated %d bytes", grown)
			}
			if o.Finish(EndedClean, 2).Outcome == event.OutcomeOK {
				t.Error("an answer without end is ok")
			}
		})
	}
	if size := unsafe.Sizeof(Observer{}) + unsafe.Sizeof(scanner{})*2; size > 12<<10 {
		t.Errorf("an observer takes %d bytes", size)
	}
}

// TestKeepsNoText: nothing of a prompt or an answer can be found in what an
// Observer holds.
func TestKeepsNoText(t *testing.T) {
	const secret = "swordfish"
	ex := stream(events, `data: {"content":"`+secret+`","choices":[{"delta":{"content":"`+secret+`"}}],"prompt":"`+secret+`","error":"`+secret+`"}`+"\n\n",
		": "+secret+"\n\n").asking(`{"model":"m","prompt":["` + secret + `"],"messages":[{"content":"` + secret + `"}]}`)
	o := ex.open()
	for _, p := range ex.pieces {
		o.ResponseBody(p, 1)
	}
	if text := everyString(reflect.ValueOf(o), map[uintptr]bool{}); strings.Contains(text, secret) {
		t.Errorf("kept: %q", text)
	}
}

// everyString collects the strings and bytes reachable from v.
func everyString(v reflect.Value, seen map[uintptr]bool) string {
	var all strings.Builder
	switch v.Kind() {
	case reflect.String:
		all.WriteString(v.String())
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			break
		}
		seen[v.Pointer()] = true
		all.WriteString(everyString(v.Elem(), seen))
	case reflect.Struct:
		for i := range v.NumField() {
			all.WriteString(everyString(v.Field(i), seen))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			// The spare room behind a slice counts too.
			all.Write(v.Slice(0, v.Cap()).Bytes())
			break
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			if k := v.Type().Elem().Kind(); k == reflect.Uint8 {
				all.WriteByte(byte(v.Index(i).Uint()))
				continue
			}
			all.WriteString(everyString(v.Index(i), seen))
		}
	}
	return all.String()
}
