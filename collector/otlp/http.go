package otlp

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	collect "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// maxBodies bounds the exports held in memory at once.
const maxBodies = 4

// bodyWait is how long an export waits for its turn.
const bodyWait = 5 * time.Second

// An encoding is how an export and its answer are written.
type encoding struct {
	contentType string
	unmarshal   func([]byte, proto.Message) error
	marshal     func(proto.Message) ([]byte, error)
}

// encodingOf reads a Content-Type; ok is false for what is none of the two.
func encodingOf(contentType string) (e encoding, ok bool) {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && kind == "application/x-protobuf":
		return encoding{kind, proto.Unmarshal, proto.Marshal}, true
	case err == nil && kind == "application/json":
		return encoding{kind, unmarshalJSON, protojson.Marshal}, true
	}
	return encoding{"application/json", unmarshalJSON, protojson.Marshal}, false
}

// Handler takes POST /v1/traces.
func (r *Receiver) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/traces", r.serveTraces)
	return mux
}

func (r *Receiver) serveTraces(w http.ResponseWriter, req *http.Request) {
	enc, ok := encodingOf(req.Header.Get("Content-Type"))
	switch {
	case req.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		fail(w, enc, http.StatusMethodNotAllowed, codes.Unimplemented, "use POST")
		return
	case !ok:
		fail(w, enc, http.StatusUnsupportedMediaType, codes.InvalidArgument, "Content-Type must be application/x-protobuf or application/json")
		return
	}
	// The body waits in the connection until there is room for it.
	wait := time.NewTimer(bodyWait)
	defer wait.Stop()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-wait.C:
		r.count(func(s *Stats) *uint64 { return &s.Limited })
		busy(w, enc)
		return
	case <-req.Context().Done():
		return
	}
	answer, err := r.export(w, req, enc)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		reply(w, enc, http.StatusOK, answer)
	case errors.Is(err, errBusy):
		busy(w, enc)
	case errors.As(err, &tooLarge), errors.Is(err, errUnpacked):
		r.count(func(s *Stats) *uint64 { return &s.TooLarge })
		fail(w, enc, http.StatusRequestEntityTooLarge, codes.ResourceExhausted, fmt.Sprintf("an export is at most %d bytes, unpacked", r.config.MaxBody))
	case errors.Is(err, errCoding):
		fail(w, enc, http.StatusUnsupportedMediaType, codes.InvalidArgument, err.Error())
	default:
		r.count(func(s *Stats) *uint64 { return &s.Malformed })
		fail(w, enc, http.StatusBadRequest, codes.InvalidArgument, err.Error())
	}
}

var (
	errCoding   = errors.New("Content-Encoding must be gzip or none")
	errUnpacked = errors.New("too large when unpacked")
)

// export reads the body and takes what it holds.
func (r *Receiver) export(w http.ResponseWriter, req *http.Request, enc encoding) (proto.Message, error) {
	body, err := r.body(w, req)
	if err != nil {
		return nil, err
	}
	var export collect.ExportTraceServiceRequest
	if err := enc.unmarshal(body, &export); err != nil {
		return nil, fmt.Errorf("not an ExportTraceServiceRequest: %w", err)
	}
	return r.take(&export)
}

func (r *Receiver) body(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	var packed io.Reader = http.MaxBytesReader(w, req.Body, int64(r.config.MaxBody))
	switch coding := strings.ToLower(req.Header.Get("Content-Encoding")); coding {
	case "", "identity":
		return io.ReadAll(packed)
	case "gzip":
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		var body bytes.Buffer
		n, err := io.Copy(&body, io.LimitReader(unpacked, int64(r.config.MaxBody)+1))
		if n > int64(r.config.MaxBody) {
			return nil, errUnpacked
		}
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return body.Bytes(), nil
	}
	return nil, errCoding
}

// busy answers that the export may be sent again.
func busy(w http.ResponseWriter, enc encoding) {
	w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	fail(w, enc, http.StatusTooManyRequests, codes.Unavailable, errBusy.Error())
}

// fail answers with a google.rpc.Status, as the protocol wants it.
func fail(w http.ResponseWriter, enc encoding, status int, code codes.Code, message string) {
	reply(w, enc, status, &rpc.Status{Code: int32(code), Message: strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")})
}

func reply(w http.ResponseWriter, enc encoding, status int, m proto.Message) {
	body, err := enc.marshal(m)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", enc.contentType)
	w.WriteHeader(status)
	w.Write(body)
}
