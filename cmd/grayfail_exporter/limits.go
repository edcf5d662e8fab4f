package main

import (
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// limits bound what one client of the page, the metrics and the API can hold.
type limits struct {
	header      time.Duration // to send a request's header
	request     time.Duration // to send a request
	idle        time.Duration // between two requests of a connection
	headerBytes int
	connections int // of a listener; more wait to be accepted
}

// A scraper that keeps its connection asks again within minutes.
var webLimits = limits{
	header: 10 * time.Second, request: 60 * time.Second, idle: 5 * time.Minute, headerBytes: 64 << 10, connections: 512,
}

func newHTTPServer(h http.Handler, l limits) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: l.header, ReadTimeout: l.request, IdleTimeout: l.idle, MaxHeaderBytes: l.headerBytes,
	}
}

func (l limits) listener(inner net.Listener) net.Listener {
	return netutil.LimitListener(inner, l.connections)
}
