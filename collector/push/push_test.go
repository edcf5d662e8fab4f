package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"grayfail/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var arrival0 = time.Unix(1_796_077_175, 0)

// lab is a handler with a clock that the test sets.
type lab struct {
	handler *Handler
	mu      sync.Mutex
	now     time.Time
	got     []event.Request
}

func newLab(config Config) *lab {
	l := &lab{now: arrival0}
	l.handler = New(config, Hooks{
		Emit: func(r event.Request) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.got = append(l.got, r)
		},
		Now: func() time.Time {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.now
		},
	})
	return l
}

func (l *lab) advance(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

// post pushes a body and returns status, header and answer.
func (l *lab) post(t testing.TB, body io.Reader) (*http.Response, answer) {
	t.Helper()
	return l.serve(t, httptest.NewRequest(http.MethodPost, "/api/v1/requests", body))
}

func (l *lab) serve(t testing.TB, r *http.Request) (*http.Response, answer) {
	t.Helper()
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, r)
	response := w.Result()
	var a answer
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		t.Fatalf("answer: %v", err)
	}
	return response, a
}

const (
	one   = `{"id":"a","model":"m","generated_tokens":20,"decode_tokens_per_second":25.5}`
	timed = `{"id":"b","source":"s","model":"m","start":"2026-11-30T22:00:00Z","first_token":"2026-11-30T22:00:01.5Z","end":"2026-11-30T22:00:03Z",` +
		`"prompt_tokens":10,"cached_tokens":4,"generated_tokens":20,"concurrency":2.5,"condition":"loss 5%","unknown":[1]}`
)

func TestAccepts(t *testing.T) {
	end := arrival0.UnixNano()
	a := event.Request{ID: "a", Source: "push", Model: "m", EndNS: end, GeneratedTokens: 20, DecodeRate: 25.5, Outcome: event.OutcomeOK}
	b := event.Request{
		ID: "b", Source: "s", Model: "m", StartNS: time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC).UnixNano(),
		FirstTokenNS: time.Date(2026, 11, 30, 22, 0, 1, 5e8, time.UTC).UnixNano(), EndNS: time.Date(2026, 11, 30, 22, 0, 3, 0, time.UTC).UnixNano(),
		PromptTokens: 10, CachedTokens: 4, GeneratedTokens: 20, Outcome: event.OutcomeOK, Concurrency: 2.5, Condition: "loss 5%",
	}
	for name, test := range map[string]struct {
		body string
		want []event.Request
	}{
		"one object":           {one, []event.Request{a}},
		"one line":             {one + "\n", []event.Request{a}},
		"lines":                {one + "\n" + timed + "\n", []event.Request{a, b}},
		"lines without an end": {one + "\n" + timed, []event.Request{a, b}},
		"CRLF and blank lines": {"\r\n" + one + "\r\n\r\n  \n" + timed + "\r\n\r\n", []event.Request{a, b}},
		"pretty-printed":       {"\n" + strings.NewReplacer(",", ",\n  ", "{", "{\n", "}", "\n}\n").Replace(one), []event.Request{a}},
		"typed":                {`{"type":"request",` + one[1:], []event.Request{a}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(Config{})
			response, got := l.post(t, strings.NewReader(test.body))
			if response.StatusCode != http.StatusAccepted || response.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %v", response.Status, response.Header)
			}
			if diff := cmp.Diff(answer{Accepted: len(test.want)}, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, l.got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnswerBytes: the contract's words, and no more than those.
func TestAnswerBytes(t *testing.T) {
	w := httptest.NewRecorder()
	newLab(Config{}).handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(one)))
	if got := w.Body.String(); got != `{"accepted":1}`+"\n" {
		t.Errorf("%q", got)
	}
	w = httptest.NewRecorder()
	newLab(Config{}).handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(one+"\n{}\n")))
	if got := w.Body.String(); got != `{"accepted":1,"errors":[{"line":2,"error":"field \"model\": is needed"}]}`+"\n" {
		t.Errorf("%q", got)
	}
}

func TestRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		body     string
		accepted int
		errors   []lineError
	}{
		"empty":      {"", 0, []lineError{{1, "the body has no record: send one JSON object, or one on each line"}}},
		"blank":      {" \n\n", 0, []lineError{{1, "the body has no record: send one JSON object, or one on each line"}}},
		"array":      {"[" + one + "]", 0, []lineError{{1, "a JSON array is not accepted: send one object, or one object on each line"}}},
		"one bad":    {one + "\nnonsense\n" + timed, 2, []lineError{{2, "not a JSON object"}}},
		"first bad":  {"{\"model\":\n" + one + "\n" + timed, 2, []lineError{{1, "unexpected end of JSON input"}}},
		"no model":   {`{"decode_tokens_per_second":3}`, 0, []lineError{{1, `field "model": is needed`}}},
		"blank name": {`{"model":" \t ","decode_tokens_per_second":3}`, 0, []lineError{{1, `field "model": is blank`}}},
		"no rate":    {"\n\n" + `{"model":"m"}`, 0, []lineError{{3, `field "decode_tokens_per_second": is needed: give a rate, or generated_tokens with first_token and end`}}},
		"other type": {`{"type":"leg","leg":"a","time_ns":1,"transport":"tcp"}`, 0, []lineError{{1, `field "type": only request records are accepted here`}}},
		"wrong unit": {`{"model":"m","decode_tokens_per_second":3,"end_ns":1796077175}`, 0,
			[]lineError{{1, `field "end": is before the year 2000: *_ns fields are Unix time in nanoseconds`}}},
		"future": {`{"model":"m","decode_tokens_per_second":3,"end":"2036-01-01T00:00:00Z"}`, 0,
			[]lineError{{1, `field "end": is more than 1h0m0s in the future: are the clocks in step?`}}},
		"future start": {`{"model":"m","decode_tokens_per_second":3,"start":"2036-01-01T00:00:00Z"}`, 0,
			[]lineError{{1, `field "start": is more than 1h0m0s in the future: are the clocks in step?`}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(Config{})
			response, got := l.post(t, strings.NewReader(test.body))
			if response.StatusCode != http.StatusBadRequest || got.Accepted != test.accepted || len(l.got) != test.accepted {
				t.Errorf("%s, %d accepted, %d records", response.Status, got.Accepted, len(l.got))
			}
			if diff := cmp.Diff(test.errors, got.Errors); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyErrors(t *testing.T) {
	l := newLab(Config{})
	_, got := l.post(t, strings.NewReader(strings.Repeat("x\n", 1000)+one))
	if got.Accepted != 1 || len(got.Errors) != maxErrors || got.MoreErrors != 1000-maxErrors || l.handler.Stats().Bad != 1000 {
		t.Errorf("%d accepted, %d errors and %d more, stats %+v", got.Accepted, len(got.Errors), got.MoreErrors, l.handler.Stats())
	}
	_, got = l.post(t, strings.NewReader(`{"type":"`+strings.Repeat("é", 10000)+`"}`))
	if len(got.Errors) != 1 || len(got.Errors[0].Error) > 310 {
		t.Errorf("%d bytes of error", len(got.Errors[0].Error))
	}
}

func TestTimes(t *testing.T) {
	ahead := arrival0.Add(30 * time.Minute)
	for name, test := range map[string]struct {
		fields string
		endNS  int64
	}{
		"no end: arrival":           {``, arrival0.UnixNano()},
		"old":                       {`,"end":"2001-01-01T00:00:00Z"`, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()},
		"a little ahead":            {`,"end_ns":` + fmt.Sprint(ahead.UnixNano()), ahead.UnixNano()},
		"start ahead of us, no end": {`,"start_ns":` + fmt.Sprint(ahead.UnixNano()), ahead.UnixNano()},
	} {
		l := newLab(Config{})
		if _, got := l.post(t, strings.NewReader(`{"model":"m","decode_tokens_per_second":3`+test.fields+`}`)); got.Accepted != 1 || l.got[0].EndNS != test.endNS {
			t.Errorf("%s: %+v, %+v", name, got, l.got)
		}
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 200)
	for name, test := range map[string]struct{ id, source, model, condition, wantID, wantSource, wantModel, wantCondition string }{
		"plain":              {"r-1", "cli", "qwen2.5-0.5b", "loss", "r-1", "cli", "qwen2.5-0.5b", "loss"},
		"controls":           {"a\nb\x00", "s\r\nx", "m\u202ex\x1b[31m", "c\u2028", "a_b_", "s__x", "m_x_[31m", "c"},
		"long":               {long, long, long + "é", long, long[:47] + "~96245ce14f7a5b0d", long[:64], long[:128], long[:64]},
		"cut in a character": {"x", "x", long[:127] + "é", "", "x", "x", long[:127], ""},
		"quotes":             {`a"b\c d`, "s", `m"`, "", "a_b_c_d", "s", `m"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(Config{})
			body, err := json.Marshal(map[string]any{"id": test.id, "source": test.source, "model": test.model, "condition": test.condition, "decode_tokens_per_second": 1})
			if err != nil {
				t.Fatal(err)
			}
			l.post(t, strings.NewReader(string(body)))
			want := event.Request{ID: test.wantID, Source: test.wantSource, Model: test.wantModel, Condition: test.wantCondition}
			if diff := cmp.Diff([]event.Request{want}, l.got, cmpopts.IgnoreFields(event.Request{}, "EndNS", "Outcome", "DecodeRate")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	l := newLab(Config{})
	l.post(t, strings.NewReader(`{"model":"m","decode_tokens_per_second":1}`+"\n"+`{"model":"m","decode_tokens_per_second":1}`))
	if len(l.got) != 2 || l.got[0].ID == l.got[1].ID || !strings.HasPrefix(l.got[0].ID, "gf-") || l.got[0].Source != "push" {
		t.Errorf("made names: %+v", l.got)
	}
}

func TestRepeats(t *testing.T) {
	l := newLab(Config{})
	check := func(body string, accepted, duplicates int) {
		t.Helper()
		response, got := l.post(t, strings.NewReader(body))
		if response.StatusCode != http.StatusAccepted || got.Accepted != accepted || got.Duplicates != duplicates {
			t.Errorf("%s %+v, want %d accepted, %d duplicates", response.Status, got, accepted, duplicates)
		}
	}
	check(one, 1, 0)
	check(one, 0, 1)
	check(one+"\n"+timed+"\n"+timed, 1, 2)
	l.advance(10*time.Minute - 1)
	check(one, 0, 1)
	l.advance(1)
	check(one, 1, 0)
	check(one, 0, 1)
	if s := l.handler.Stats(); s.Accepted != 3 || s.Duplicates != 5 || s.Forgotten != 0 || len(l.got) != 3 {
		t.Errorf("stats %+v, %d records", s, len(l.got))
	}
}

// TestRepeatsBounded: past the bound the oldest id is forgotten, and counted.
func TestRepeatsBounded(t *testing.T) {
	l := newLab(Config{RememberIDs: 100})
	push := func(i int) answer {
		_, a := l.post(t, strings.NewReader(fmt.Sprintf(`{"id":"%d","model":"m","decode_tokens_per_second":1}`, i)))
		return a
	}
	for i := range 150 {
		push(i)
	}
	if s := l.handler.Stats(); s.Forgotten != 50 || s.Accepted != 150 {
		t.Errorf("stats %+v", s)
	}
	if a := push(50); a.Duplicates != 1 {
		t.Errorf("the oldest that fits is not known: %+v", a)
	}
	if a := push(49); a.Accepted != 1 {
		t.Errorf("the newest that does not fit is known: %+v", a)
	}
	if n := len(l.handler.recent.ring); n != 100 {
		t.Errorf("ring of %d", n)
	}
}

func TestTooLarge(t *testing.T) {
	l := newLab(Config{MaxBody: 300})
	response, got := l.post(t, strings.NewReader(one+"\n"+strings.Replace(one, `"a"`, `"a2"`, 1)+"\n"+strings.Repeat(" ", 100)+one+one))
	if response.StatusCode != http.StatusRequestEntityTooLarge || got.Accepted != 2 || len(got.Errors) != 1 || got.Errors[0].Line != 3 ||
		!strings.Contains(got.Errors[0].Error, "larger than 300 bytes") || l.handler.Stats().TooLarge != 1 {
		t.Errorf("%s %+v", response.Status, got)
	}
	l = newLab(Config{MaxLine: 200})
	response, got = l.post(t, strings.NewReader(one+"\n"+strings.Replace(one, "m", strings.Repeat("m", 200), 1)+"\n"+timed[:len(timed)-1]+strings.Repeat(" ", 5000)+"}\n"+strings.Replace(one, `"a"`, `"c"`, 1)))
	if response.StatusCode != http.StatusBadRequest || got.Accepted != 2 || len(got.Errors) != 2 || got.Errors[0].Line != 2 ||
		got.Errors[1] != (lineError{3, "the record is longer than 200 bytes"}) {
		t.Errorf("%s %+v", response.Status, got)
	}
}

func TestRateLimit(t *testing.T) {
	l := newLab(Config{PerSecond: 10, Burst: 3})
	body := func(from int) string {
		var b strings.Builder
		for i := range 5 {
			fmt.Fprintf(&b, `{"id":"%d","model":"m","decode_tokens_per_second":1}`+"\n", from+i)
		}
		return b.String()
	}
	response, got := l.post(t, strings.NewReader(body(0)))
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" || got.Accepted != 3 ||
		len(got.Errors) != 1 || got.Errors[0].Line != 4 || l.handler.Stats().RateLimited != 1 {
		t.Errorf("%s %v %+v", response.Status, response.Header, got)
	}
	l.advance(time.Second)
	// Sending all of it again takes only what was missed.
	if _, got := l.post(t, strings.NewReader(strings.SplitAfterN(body(0), "\n", 3)[2])); got.Accepted != 2 || got.Duplicates != 1 {
		t.Errorf("%+v", got)
	}
}

func TestMethods(t *testing.T) {
	l := newLab(Config{})
	for _, method := range []string{"GET", "PUT", "DELETE", "HEAD", "OPTIONS"} {
		response, _ := l.serve(t, httptest.NewRequest(method, "/", nil))
		if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %s %v", method, response.Status, response.Header)
		}
	}
	for _, contentType := range []string{"", "application/json", "application/x-ndjson", "text/plain", "application/x-www-form-urlencoded"} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(`{"model":"m","decode_tokens_per_second":1}`))
		r.Header.Set("Content-Type", contentType)
		if response, _ := l.serve(t, r); response.StatusCode != http.StatusAccepted {
			t.Errorf("%q: %s", contentType, response.Status)
		}
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader("x"))
	r.Header.Set("Content-Encoding", "gzip")
	if response, _ := l.serve(t, r); response.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("gzip: %s", response.Status)
	}
}

// TestBroken: what came before the connection broke is kept.
func TestBroken(t *testing.T) {
	l := newLab(Config{})
	response, got := l.post(t, io.MultiReader(strings.NewReader(one+"\n"+timed[:50]), failed{errors.New("reset")}))
	if response.StatusCode != http.StatusBadRequest || got.Accepted != 1 || len(got.Errors) != 1 || got.Errors[0].Line != 2 {
		t.Errorf("%s %+v", response.Status, got)
	}
}

// TestParallel: many clients at once, none lost and none taken twice.
func TestParallel(t *testing.T) {
	l := newLab(Config{})
	var clients sync.WaitGroup
	for c := range 16 {
		clients.Go(func() {
			for i := range 100 {
				// Each id is pushed by two clients.
				l.post(t, strings.NewReader(fmt.Sprintf(`{"id":"%d-%d","model":"m","decode_tokens_per_second":1}`, c/2, i)))
			}
		})
	}
	clients.Wait()
	if s := l.handler.Stats(); s.Accepted != 800 || s.Duplicates != 800 || len(l.got) != 800 {
		t.Errorf("stats %+v, %d records", s, len(l.got))
	}
}
