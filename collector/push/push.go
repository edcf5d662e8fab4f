package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"grayfail/event"
)

// Config of the push API; zero values take the defaults in brackets.
type Config struct {
	MaxBody     int64   // bytes in one POST [16 MiB]
	MaxLine     int     // bytes in one record [1 MiB]
	PerSecond   float64 // records a second, all clients together [50000]
	Burst       int     // records at once [100000]
	RememberIDs int     // ids kept to recognise repeats [131072]
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.MaxBody == 0 {
		c.MaxBody = 16 << 20
	}
	if c.MaxLine == 0 {
		c.MaxLine = 1 << 20
	}
	if c.PerSecond == 0 {
		c.PerSecond = 50_000
	}
	if c.Burst == 0 {
		c.Burst = 100_000
	}
	if c.RememberIDs == 0 {
		c.RememberIDs = 1 << 17
	}
	return c
}

// Hooks connect the handler to the rest.
type Hooks struct {
	// Emit takes each accepted record. It is called from many goroutines and
	// must not block.
	Emit func(event.Request)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Stats counts since the start.
type Stats struct {
	Accepted    uint64 // records taken
	Bad         uint64 // lines refused
	Duplicates  uint64 // ids repeated within 10 minutes, ignored
	Forgotten   uint64 // ids dropped early because RememberIDs was reached
	RateLimited uint64 // POSTs answered 429
	TooLarge    uint64 // POSTs answered 413
}

// Handler is the push endpoint. Safe for concurrent use.
type Handler struct {
	config Config
	hooks  Hooks
	limit  *rate.Limiter
	recent *recent

	accepted, bad, duplicates, rateLimited, tooLarge atomic.Uint64
}

// New makes the handler.
func New(config Config, hooks Hooks) *Handler {
	if hooks.Now == nil {
		hooks.Now = time.Now
	}
	if hooks.Emit == nil {
		hooks.Emit = func(event.Request) {}
	}
	config = config.withDefaults()
	return &Handler{
		config: config, hooks: hooks,
		limit:  rate.NewLimiter(rate.Limit(config.PerSecond), config.Burst),
		recent: newRecent(config.RememberIDs),
	}
}

// Stats returns the counters.
func (h *Handler) Stats() Stats {
	return Stats{
		Accepted: h.accepted.Load(), Bad: h.bad.Load(), Duplicates: h.duplicates.Load(),
		Forgotten: h.recent.dropped(), RateLimited: h.rateLimited.Load(), TooLarge: h.tooLarge.Load(),
	}
}

// ServeHTTP takes one POST. Whatever the answer's status, the records it
// counts as accepted were taken: a client that sends ids may send all of them
// again.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		reply(w, http.StatusMethodNotAllowed, answer{Errors: []lineError{{0, "method " + r.Method + " is not allowed: use POST"}}})
		return
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		reply(w, http.StatusUnsupportedMediaType, answer{Errors: []lineError{{0, fmt.Sprintf("content coding %q is not supported: send plain JSON", coding)}}})
		return
	}
	status, body := h.take(http.MaxBytesReader(w, r.Body, h.config.MaxBody))
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	reply(w, status, body)
}

// answer is the body of every answer.
type answer struct {
	Accepted int `json:"accepted"`
	// Duplicates are records whose id was pushed in the last 10 minutes.
	Duplicates int         `json:"duplicates,omitempty"`
	Errors     []lineError `json:"errors,omitempty"`
	// MoreErrors is how many more lines are bad than Errors lists.
	MoreErrors int `json:"more_errors,omitempty"`
}

// lineError names a line of the body, from 1; 0 is the request itself.
type lineError struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

// maxErrors bounds the list in an answer.
const maxErrors = 100

func (a *answer) fail(line int, err error) {
	if len(a.Errors) == maxErrors {
		a.MoreErrors++
		return
	}
	a.Errors = append(a.Errors, lineError{line, clip(err.Error())})
}

// clip bounds a message: it may quote the client's own words.
func clip(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

func reply(w http.ResponseWriter, status int, a answer) {
	body, err := json.Marshal(a)
	if err != nil { // nothing in an answer can fail to marshal
		status, body = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}

// errLimited says that a record came too soon.
var errLimited = errors.New("rate limit reached: send this line and those after it again")
