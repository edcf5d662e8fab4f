package proxy

import (
	"net/http"
	"time"
)

// NewServer makes the server for a proxy's listener: HTTP/1.1 and h2c, no
// limit on the length of an answer. The caller gives it a listener (Serve)
// and ends it: Shutdown lets streams finish within the caller's deadline,
// Close cuts what is left.
func NewServer(handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: handler, Protocols: protocols,
		ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
	}
}
