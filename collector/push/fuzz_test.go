package push

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"grayfail/event"
)

// FuzzPush: any body gets an answer that adds up, and every record taken can
// be exported.
func FuzzPush(f *testing.F) {
	for _, body := range []string{
		one, timed, one + "\n" + timed, "[" + one + "]", "{\n" + one[1:], "\x00\n{}\n" + one, "\r\r\n\n", "{\"model\":\"\\ud800\",\"decode_tokens_per_second\":1e308}",
		`{"model":"m","generated_tokens":9,"first_token_ns":1796077174000000000,"end_ns":1796077175000000000}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got []event.Request
		l := newLab(Config{MaxBody: 1 << 12, MaxLine: 1 << 10})
		l.handler.hooks.Emit = func(r event.Request) { got = append(got, r) }
		w := httptest.NewRecorder()
		l.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
		var a answer
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatalf("%q: %v", w.Body, err)
		}
		if a.Accepted != len(got) || (w.Code == http.StatusAccepted) != (len(a.Errors) == 0) {
			t.Errorf("%d %+v, %d records", w.Code, a, len(got))
		}
		last := 0
		for _, e := range a.Errors {
			if e.Line <= last || e.Line > 1+bytes.Count(body, []byte("\n")) {
				t.Errorf("lines %+v", a.Errors)
			}
			last = e.Line
		}
		for _, r := range got {
			for _, name := range []string{r.ID, r.Source, r.Model} {
				if name == "" || len(name) > 128 || !utf8.ValidString(name) || strings.ContainsAny(name, "\n\r\x00") {
					t.Errorf("name %q", name)
				}
			}
			// What was taken can be written and read again.
			line, err := json.Marshal(&r)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := event.ParseRequest(line); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}

func BenchmarkPush(b *testing.B) {
	for name, body := range map[string]string{"one": timed, "lines of 100": strings.Repeat(timed+"\n", 100)} {
		b.Run(name, func(b *testing.B) {
			h := New(Config{PerSecond: 1e12, Burst: 1 << 40}, Hooks{})
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
			}
		})
	}
}
