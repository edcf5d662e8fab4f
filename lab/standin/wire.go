package standin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Commands, one byte each. A request is cmd(1) size(8) payload and a reply is
// size(8) payload, little-endian, as in llama.cpp's ggml-rpc.
const (
	cmdHello     = 0 // no payload; replies with a version
	cmdDevice    = 1 // no payload; replies with 16 bytes
	cmdSetTensor = 2 // payload is kept by nobody; no reply
	cmdCompute   = 3 // payload starts with computeHead; replies with as much as it asks
)

// computeHead is nanoseconds to compute (8) and bytes to reply (4).
const computeHead = 12

// maxPayload bounds what a peer can make us read or write.
const maxPayload = 64 << 20

var errTooBig = fmt.Errorf("payload larger than %d bytes", maxPayload)

func writeRequest(w io.Writer, cmd byte, payload []byte) error {
	// Head and payload leave in two sends, as ggml-rpc does it.
	head := binary.LittleEndian.AppendUint64([]byte{cmd}, uint64(len(payload)))
	if _, err := w.Write(head); err != nil {
		return err
	}
	if len(payload) == 0 {
		return nil
	}
	_, err := w.Write(payload)
	return err
}

// readRequest returns io.EOF when the peer closed between requests. The
// payload beyond keep bytes is read and dropped.
func readRequest(r io.Reader, keep int) (cmd byte, payload []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.LittleEndian.Uint64(head[1:])
	if size > maxPayload {
		return 0, nil, errTooBig
	}
	payload = make([]byte, min(int(size), keep))
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, noEOF(err)
	}
	if _, err := io.CopyN(io.Discard, r, int64(size)-int64(len(payload))); err != nil {
		return 0, nil, noEOF(err)
	}
	return head[0], payload, nil
}

func writeReply(w io.Writer, payload []byte) error {
	buf := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(payload)), uint64(len(payload)))
	_, err := w.Write(append(buf, payload...))
	return err
}

// readReply reads a reply to its end and drops the payload.
func readReply(r io.Reader) (size int, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, noEOF(err)
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxPayload {
		return 0, errTooBig
	}
	_, err = io.CopyN(io.Discard, r, int64(n))
	return int(n), noEOF(err)
}

// noEOF: inside a message an end is never clean.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// compute is one exchange: size bytes out, d of work over there, reply bytes back.
func compute(c net.Conn, size int, d time.Duration, reply int) error {
	payload := make([]byte, max(computeHead, size))
	binary.LittleEndian.PutUint64(payload, uint64(d))
	binary.LittleEndian.PutUint32(payload[8:], uint32(reply))
	if err := writeRequest(c, cmdCompute, payload); err != nil {
		return err
	}
	got, err := readReply(c)
	if err == nil && got != reply {
		err = fmt.Errorf("reply of %d bytes, want %d", got, reply)
	}
	return err
}
