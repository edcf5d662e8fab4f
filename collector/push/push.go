package push

import (
	"net/http"
	"time"

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
}

// New makes the handler.
func New(config Config, hooks Hooks) *Handler { return &Handler{config: config, hooks: hooks} }

// Stats returns the counters.
func (h *Handler) Stats() Stats { return Stats{} }

// ServeHTTP takes one POST.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "not built yet", http.StatusNotImplemented)
}
