package standin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Worker serves one client at a time, like ggml-rpc-server: a second client is
// connected by the kernel and waits.
type Worker struct {
	Log io.Writer
}

// Serve accepts until ctx ends.
func (w *Worker) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	fmt.Fprintf(w.Log, "%s worker: not an inference engine; listening on %s\n", Name, l.Addr())
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		w.client(ctx, c)
	}
}

func (w *Worker) client(ctx context.Context, c net.Conn) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	fmt.Fprintln(w.Log, "Accepted client connection")
	if err := serveClient(c); !errors.Is(err, io.EOF) && ctx.Err() == nil {
		fmt.Fprintf(w.Log, "client: %v\n", err)
	}
	fmt.Fprintln(w.Log, "Client connection closed")
}

// serveClient answers until the client leaves, which is io.EOF.
func serveClient(c net.Conn) error {
	var pace pacer
	for {
		cmd, payload, err := readRequest(c, computeHead)
		if err != nil {
			return err
		}
		switch cmd {
		case cmdHello:
			err = writeReply(c, []byte{8, 0, 0})
		case cmdDevice:
			err = writeReply(c, make([]byte, 16))
		case cmdSetTensor:
		case cmdCompute:
			if len(payload) < computeHead {
				return fmt.Errorf("compute request of %d bytes, want %d at least", len(payload), computeHead)
			}
			d, n := binary.LittleEndian.Uint64(payload), binary.LittleEndian.Uint32(payload[8:])
			if d > uint64(time.Minute) || n > maxPayload {
				return fmt.Errorf("compute request for %d ns and %d bytes", d, n)
			}
			pace.work(time.Duration(d))
			err = writeReply(c, make([]byte, n))
		default:
			err = fmt.Errorf("unknown command %d", cmd)
		}
		if err != nil {
			return err
		}
	}
}
