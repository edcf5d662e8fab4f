package proxy

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Limits of a decoder: bytes waiting to be decoded, and bytes decoded of one
// answer. What goes beyond is not looked at.
const (
	maxQueued  = 1 << 20
	maxPieces  = 1024
	maxDecoded = 256 << 20
	maxWindow  = 8 << 20 // of zstd
)

var errDecoded = errors.New("decoded size beyond the limit")

// decoder undoes an answer's content coding on the side, for the observer
// alone, in a goroutine of its own: decoders wait for their input, and the
// client shall not.
type decoder struct {
	call   *call
	queue  chan piece
	queued atomic.Int64
	lost   bool // the queue was full once: nothing more is added
	finish func()
}

// piece of the coded answer and when it came.
type piece struct {
	bytes []byte
	atNS  int64
}

func (c *call) newDecoder(coding string) *decoder {
	d := &decoder{call: c, queue: make(chan piece, maxPieces)}
	c.proxy.calls.Add(1)
	go d.run(coding)
	return d
}

// add queues a copy; it never waits.
func (d *decoder) add(p []byte, atNS int64) {
	if d.lost {
		return
	}
	next := piece{append([]byte(nil), p...), atNS}
	if d.queued.Add(int64(len(p))) <= maxQueued {
		select {
		case d.queue <- next:
			return
		default:
		}
	}
	d.lost = true
}

// end says that the answer has ended; finish is called when all of it has
// been looked at.
func (d *decoder) end(finish func()) {
	d.finish = finish
	close(d.queue)
}

func (d *decoder) run(coding string) {
	defer d.call.proxy.calls.Done()
	source := &pieces{decoder: d}
	var err error
	d.call.guard(func() { err = d.decode(coding, source) })
	for range d.queue { // whatever stopped the decoding, wait for the end
	}
	if (err != nil || d.lost) && !d.call.dead.Load() {
		d.call.observer.Abandon()
		d.call.proxy.tally.partial.Add(1)
		if err != nil {
			d.call.proxy.hooks.Log(fmt.Errorf("proxy %s: cannot look into an answer coded %q: %w", d.call.proxy.config.Name, coding, err))
		}
	}
	d.finish()
}

func (d *decoder) decode(coding string, source *pieces) error {
	plain, err := decoded(coding, source)
	if err != nil {
		return unlessCut(err)
	}
	if closer, ok := plain.(io.Closer); ok {
		defer closer.Close()
	}
	buffer := d.call.proxy.buffers.Get()
	defer d.call.proxy.buffers.Put(buffer)
	for left := maxDecoded; left > 0; {
		n, err := plain.Read(buffer)
		d.call.observer.ResponseBody(buffer[:n], source.atNS)
		left -= n
		if err != nil {
			return unlessCut(err)
		}
	}
	return errDecoded
}

// unlessCut lets an answer that ends early pass: the observer sees that by
// itself.
func unlessCut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// decoded undoes one content coding (RFC 9110, section 8.4.1).
func decoded(coding string, source io.Reader) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(source)
	case "deflate":
		// zlib by the standard, often without its header in practice.
		peek := bufio.NewReader(source)
		head, err := peek.Peek(2)
		if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
			return zlib.NewReader(peek)
		}
		return flate.NewReader(peek), nil
	case "br":
		return brotli.NewReader(source), nil
	case "zstd":
		r, err := zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return r.IOReadCloser(), nil
	}
	return nil, errors.New("unknown content coding")
}

// pieces reads the queue, one piece at a time, so that atNS is the time of
// the last byte handed out.
type pieces struct {
	decoder *decoder
	rest    []byte
	atNS    int64
}

func (s *pieces) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		next, ok := <-s.decoder.queue
		if !ok {
			return 0, io.EOF
		}
		s.decoder.queued.Add(-int64(len(next.bytes)))
		s.rest, s.atNS = next.bytes, next.atNS
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
