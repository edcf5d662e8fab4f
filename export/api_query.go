package export

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"grayfail/event"
)

// defaultLimit is the number of rows given where none is asked for.
const defaultLimit = 100

// rowFilter is what /api/v1/requests was asked for; "" admits everything.
type rowFilter struct {
	verdict event.Verdict
	model   string
	limit   int
}

func (f rowFilter) admits(r *event.Row) bool {
	return (f.verdict == "" || r.Verdict == f.verdict) && (f.model == "" || r.Model == f.model)
}

// requestFilter reads the parameters; an empty one is one not given. A limit
// beyond what is remembered gives all that is.
func requestFilter(r *http.Request) (rowFilter, error) {
	f := rowFilter{limit: defaultLimit}
	values, err := query(r, "verdict", "model", "limit")
	if err != nil {
		return f, err
	}
	f.verdict, f.model = event.Verdict(values.Get("verdict")), values.Get("model")
	if f.verdict != "" && !slices.Contains(event.Verdicts, f.verdict) {
		return f, fmt.Errorf("parameter verdict: %q is unknown: allowed are ok, slow, unknown", label(string(f.verdict)))
	}
	if text := values.Get("limit"); text != "" {
		f.limit, err = strconv.Atoi(text)
		if err != nil || f.limit < 1 {
			return f, fmt.Errorf("parameter limit: %q is not a whole number of 1 or more", label(text))
		}
	}
	return f, nil
}

// query reads the parameters strictly: a misspelt filter that is ignored gives
// an answer to another question.
func query(r *http.Request, allowed ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("query cannot be read: %s", label(err.Error()))
	}
	for name, v := range values {
		if !slices.Contains(allowed, name) {
			if len(allowed) == 0 {
				return nil, fmt.Errorf("parameter %s is unknown: none is allowed here", label(name))
			}
			return nil, fmt.Errorf("parameter %s is unknown: allowed are %s", label(name), strings.Join(allowed, ", "))
		}
		if len(v) > 1 {
			return nil, fmt.Errorf("parameter %s is given %d times: once is allowed", label(name), len(v))
		}
	}
	return values, nil
}

func writeError(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]string{"error": text})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // a float that is no number: all are checked on the way in
		status, body = http.StatusInternalServerError, []byte(`{"error":"answer cannot be written as JSON"}`)
	}
	writeBody(w, status, append(body, '\n'))
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone; nobody is left to tell
}
