package proxy

import "sync"

// pieceSize is what is read from an upstream at once.
const pieceSize = 32 << 10

// buffers hands out pieces of memory for one read; it is an
// httputil.BufferPool.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { return new([pieceSize]byte) }}}
}

// Get returns a buffer of pieceSize bytes.
func (b *buffers) Get() []byte { return b.pool.Get().(*[pieceSize]byte)[:] }

// Put takes a buffer of Get back.
func (b *buffers) Put(p []byte) {
	if cap(p) == pieceSize {
		b.pool.Put((*[pieceSize]byte)(p[:pieceSize]))
	}
}
