package export

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

func apiMux(a *API) *http.ServeMux {
	mux := http.NewServeMux()
	a.Register(mux)
	return mux
}

func do(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func get(t *testing.T, h http.Handler, target string, into any) {
	t.Helper()
	w := do(h, http.MethodGet, target)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("GET %s: %d %s: %s", target, w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("GET %s: %v: %s", target, err, w.Body)
	}
}

func TestListsAreNeverNull(t *testing.T) {
	for published, a := range map[bool]*API{false: NewAPI(nil), true: NewAPI(nil)} {
		if published {
			a.Publish(&event.Snapshot{TimeNS: startNS})
		}
		for path, want := range map[string]string{
			"/api/v1/legs":      `{"legs":[]}`,
			"/api/v1/requests":  `{"requests":[]}`,
			"/api/v1/episodes":  `{"episodes":[]}`,
			"/api/v1/baselines": `{"baselines":[]}`,
		} {
			if got := strings.TrimSpace(do(apiMux(a), http.MethodGet, path).Body.String()); got != want {
				t.Errorf("GET %s: %s, want %s", path, got, want)
			}
		}
	}
}

func TestLegsJSON(t *testing.T) {
	legs := fullSnapshot().Legs
	const want = `{"legs":[` +
		`{"leg":"rpc-b","role":"client","netns":"","local":"10.77.2.1","peer":"10.77.2.2:50052","device":"veth-b","rdma_device":"","rdma_port":0,"transport":"tcp","reason":"","expected":"auto","process":"llama-server","pid":4711,"queue_pairs":[],"tcp":{"bytes_acked":164321,"bytes_received":128009,"rtt_us":85}},` +
		`{"leg":"rpc-r","role":"client","netns":"pod","local":"fd00::1","peer":"[fd00::2]:50052","device":"enp1s0f1","rdma_device":"mlx5_1","rdma_port":2,"transport":"fallback","reason":"port_not_probed","expected":"rdma","process":"","pid":0,"queue_pairs":[{"device":"mlx5_1","port":1,"lqpn":131,"rqpn":77,"type":"RC","state":"RTS","pid":4711}],"tcp":{"bytes_acked":5000,"bytes_received":6000,"rtt_us":1000}},` +
		`{"leg":"from 10.77.9.9","role":"server","netns":"","local":"10.77.2.1","peer":"10.77.9.9","device":"","rdma_device":"","rdma_port":0,"transport":"unknown","reason":"","expected":"auto","process":"","pid":0,"queue_pairs":[],"tcp":{"bytes_acked":0,"bytes_received":0,"rtt_us":0}}` +
		"]}\n"
	if diff := cmp.Diff(want, string(LegsJSON(legs))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a := NewAPI(nil)
	a.Publish(&event.Snapshot{Legs: legs})
	if diff := cmp.Diff(want, do(apiMux(a), http.MethodGet, "/api/v1/legs").Body.String()); diff != "" {
		t.Errorf("GET /api/v1/legs (-want +got):\n%s", diff)
	}
	const empty = `{"legs":[{"leg":"","role":"client","netns":"","local":"","peer":"","device":"","rdma_device":"","rdma_port":0,"transport":"unknown","reason":"","expected":"auto","process":"","pid":0,"queue_pairs":[],"tcp":{"bytes_acked":0,"bytes_received":0,"rtt_us":0}}]}` + "\n"
	if diff := cmp.Diff(empty, string(LegsJSON(make([]event.Leg, 1)))); diff != "" {
		t.Errorf("a leg of which nothing is known (-want +got):\n%s", diff)
	}
}

type requestsBody struct {
	Requests []event.Row `json:"requests"`
}

func ids(rows []event.Row) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}

func TestRequestsAreFilteredNewestFirst(t *testing.T) {
	a := NewAPI(nil)
	for i := range 6 {
		r := okRow()
		r.ID = fmt.Sprint(i)
		if i%2 == 1 {
			r.Verdict = event.VerdictSlow
		}
		if i == 5 {
			r.Model = "llama"
		}
		a.AddRow(r)
	}
	for query, want := range map[string]string{
		"":                                 "5 4 3 2 1 0",
		"?verdict=&model=&limit=":          "5 4 3 2 1 0",
		"?limit=2":                         "5 4",
		"?limit=1000000":                   "5 4 3 2 1 0",
		"?verdict=slow":                    "5 3 1",
		"?verdict=slow&model=qwen":         "3 1",
		"?verdict=slow&model=qwen&limit=1": "3",
		"?verdict=unknown":                 "",
		"?model=qwe":                       "",
		"?model=llama":                     "5",
	} {
		var body requestsBody
		get(t, apiMux(a), "/api/v1/requests"+query, &body)
		if got := ids(body.Requests); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func TestRequestsGiveAHundredUnlessAsked(t *testing.T) {
	a := NewAPI(nil)
	for range 150 {
		a.AddRow(okRow())
	}
	var body requestsBody
	get(t, apiMux(a), "/api/v1/requests", &body)
	if len(body.Requests) != 100 {
		t.Errorf("%d rows, want 100", len(body.Requests))
	}
}

func TestRowIsThatOfReplay(t *testing.T) {
	a := NewAPI(nil)
	r := slowRow()
	r.Condition = "5%"
	a.AddRow(r)
	a.AddRow(event.Row{ID: "x", Model: "qwen", Phase: event.PhasePrefill, Outcome: event.OutcomeOK, Verdict: event.VerdictUnknown, Detail: "too_short"})
	const want = `{"requests":[` +
		`{"id":"x","source":"","model":"qwen","condition":"","phase":"prefill","outcome":"ok","rate":null,"baseline":null,"r":null,"verdict":"unknown","excess_ms":0,"legs_ms":{},"local_ms":0,"cause":"","detail":"too_short","leg":""},` +
		`{"id":"req-17","source":"main","model":"qwen","condition":"5%","phase":"decode","outcome":"ok","rate":19.9,"baseline":121.5,"r":0.16378600823045267,"verdict":"slow","excess_ms":1389.6,"legs_ms":{"rpc-a":4.3,"rpc-b":1383.5},"local_ms":1.8,"cause":"loss","detail":"11 out-of-order segments","leg":"rpc-b","start_ns":1799999998000000000,"end_ns":1800000000000000000}` +
		"]}\n"
	if diff := cmp.Diff(want, do(apiMux(a), http.MethodGet, "/api/v1/requests").Body.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRowsAreBoundedAndOurs(t *testing.T) {
	a := NewAPI(nil)
	legs := map[string]float64{"rpc-b": 1}
	for i := range rememberedRows + 500 {
		a.AddRow(event.Row{ID: fmt.Sprint(i), LegsMS: legs, Model: strings.Repeat("m", 10_000)})
	}
	legs["rpc-b"] = 2 // the caller's map is not the remembered one
	var body requestsBody
	get(t, apiMux(a), "/api/v1/requests?limit=99999", &body)
	if len(body.Requests) != rememberedRows {
		t.Fatalf("%d rows, want %d", len(body.Requests), rememberedRows)
	}
	first, last := body.Requests[0], body.Requests[rememberedRows-1]
	if first.ID != fmt.Sprint(rememberedRows+499) || last.ID != "500" {
		t.Errorf("from %s to %s, want %d to 500", first.ID, last.ID, rememberedRows+499)
	}
	if first.LegsMS["rpc-b"] != 1 || len(first.Model) > 4*maxTextRunes {
		t.Errorf("legs_ms %v, model of %d bytes", first.LegsMS, len(first.Model))
	}
}

func TestNumbersThatAreNoneDoNotBreakAnAnswer(t *testing.T) {
	a := NewAPI(nil)
	nan, inf := math.NaN(), math.Inf(1)
	a.AddRow(event.Row{ID: "x", Rate: &nan, Baseline: &inf, R: &nan, ExcessMS: nan, LocalMS: inf, LegsMS: map[string]float64{"a": nan}})
	a.Publish(&event.Snapshot{Baselines: []event.Baseline{{Rate: nan, Anchor: inf, LogSigma: nan}}})
	var rows requestsBody
	get(t, apiMux(a), "/api/v1/requests", &rows)
	if len(rows.Requests) != 1 || rows.Requests[0].Rate != nil || rows.Requests[0].LegsMS["a"] != 0 {
		t.Errorf("%+v", rows.Requests)
	}
	var body struct{ Baselines []event.Baseline }
	get(t, apiMux(a), "/api/v1/baselines", &body)
	if len(body.Baselines) != 1 {
		t.Errorf("%d baselines, want 1", len(body.Baselines))
	}
}

func TestEpisodesOpenOnesFirst(t *testing.T) {
	a := NewAPI(nil)
	a.Publish(&event.Snapshot{Episodes: []event.Episode{
		{StartNS: 1, EndNS: 2, Model: "oldest"}, {StartNS: 3, Model: "open"}, {StartNS: 5, EndNS: 6, Model: "newest", RequestIDs: []string{"a"}},
	}})
	const want = `{"episodes":[` +
		`{"start_ns":3,"end_ns":0,"model":"open","phase":"","cause":"","leg":"","slow":0,"requests":0,"request_ids":[]},` +
		`{"start_ns":5,"end_ns":6,"model":"newest","phase":"","cause":"","leg":"","slow":0,"requests":0,"request_ids":["a"]},` +
		`{"start_ns":1,"end_ns":2,"model":"oldest","phase":"","cause":"","leg":"","slow":0,"requests":0,"request_ids":[]}` +
		"]}\n"
	if diff := cmp.Diff(want, do(apiMux(a), http.MethodGet, "/api/v1/episodes").Body.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadParametersAreNamed(t *testing.T) {
	mux := apiMux(NewAPI(nil))
	for target, want := range map[string]string{
		"/api/v1/requests?limit=0":                   `parameter limit: "0" is not a whole number of 1 or more`,
		"/api/v1/requests?limit=-1":                  `parameter limit: "-1" is not a whole number of 1 or more`,
		"/api/v1/requests?limit=ten":                 `parameter limit: "ten" is not a whole number of 1 or more`,
		"/api/v1/requests?limit=9999999999999999999": `parameter limit: "9999999999999999999" is not a whole number of 1 or more`,
		"/api/v1/requests?verdict=slo":               `parameter verdict: "slo" is unknown: allowed are ok, slow, unknown`,
		"/api/v1/requests?verdct=slow":               `parameter verdct is unknown: allowed are verdict, model, limit`,
		"/api/v1/requests?limit=1&limit=2":           `parameter limit is given 2 times: once is allowed`,
		"/api/v1/requests?a;b":                       `query cannot be read: invalid semicolon separator in query`,
		"/api/v1/legs?leg=x":                         `parameter leg is unknown: none is allowed here`,
		"/api/v1/episodes?x":                         `parameter x is unknown: none is allowed here`,
		"/api/v1/baselines?x=1":                      `parameter x is unknown: none is allowed here`,
	} {
		w := do(mux, http.MethodGet, target)
		var body struct{ Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Errorf("%s: %v: %s", target, err, w.Body)
		}
		if w.Code != http.StatusBadRequest || body.Error != want || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %q, want 400 %q", target, w.Code, body.Error, want)
		}
	}
}

func TestMethods(t *testing.T) {
	a := NewAPI(nil)
	a.AddRow(slowRow())
	mux := apiMux(a)
	pushed := 0
	mux.HandleFunc("POST /api/v1/requests", func(w http.ResponseWriter, _ *http.Request) {
		pushed++
		w.WriteHeader(http.StatusAccepted)
	})
	for path, allow := range map[string]string{
		"/": "GET, HEAD", "/api/v1/legs": "GET, HEAD", "/api/v1/requests": "GET, HEAD, POST",
		"/api/v1/episodes": "GET, HEAD", "/api/v1/baselines": "GET, HEAD",
	} {
		if w := do(mux, http.MethodHead, path); w.Code != http.StatusOK {
			t.Errorf("HEAD %s: %d, want 200", path, w.Code)
		}
		for _, method := range []string{http.MethodPut, http.MethodDelete, "BREW"} {
			w := do(mux, method, path)
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != allow {
				t.Errorf("%s %s: %d, Allow %q, want 405, %q", method, path, w.Code, w.Header().Get("Allow"), allow)
			}
		}
	}
	if w := do(mux, http.MethodPost, "/api/v1/legs"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /api/v1/legs: %d, want 405", w.Code)
	}
	if w := do(mux, http.MethodPost, "/api/v1/requests"); w.Code != http.StatusAccepted || pushed != 1 {
		t.Errorf("POST /api/v1/requests: %d, want the push handler's 202", w.Code)
	}
	if w := do(mux, http.MethodGet, "/nowhere"); w.Code != http.StatusNotFound {
		t.Errorf("GET /nowhere: %d, want 404", w.Code)
	}
}

func TestHeadSendsNoBody(t *testing.T) {
	server := httptest.NewServer(apiMux(NewAPI(nil)))
	defer server.Close()
	resp, err := server.Client().Head(server.URL + "/api/v1/legs")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ContentLength != int64(len(LegsJSON(nil))) {
		t.Errorf("%s, length %d", resp.Status, resp.ContentLength)
	}
}

func FuzzRequestsQuery(f *testing.F) {
	a := NewAPI(nil)
	a.AddRow(slowRow())
	mux := apiMux(a)
	for _, q := range []string{"", "limit=1", "verdict=slow&model=qwen", "limit=%zz", "limit=1&limit=2", "a;b", "limit=\x00", "verdict=%ff", "=&=&", strings.Repeat("a=1&", 1000)} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/requests", nil)
		r.URL.RawQuery = q
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d", q, w.Code)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q: no JSON: %s", q, w.Body)
		}
	})
}
