package llamalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"grayfail/event"
)

// PassThrough copies what an engine writes from in to out, unchanged and at
// once, and hands each request it finds there to hooks.Emit, which must not
// block: out waits for it.
//
// It ends with in: nil at its end, else the error of in or out, or ctx's. A
// read that is under way when ctx ends is left to itself: close in to end it.
func PassThrough(ctx context.Context, in io.Reader, out io.Writer, config Config, hooks Hooks) error {
	p := NewParser(config, true)
	emit := func(found []event.Request) {
		for _, r := range found {
			hooks.Emit(r)
		}
	}
	defer func() { emit(p.Close(hooks.now().UnixNano())) }()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	pieces := readAll(reading, in)
	idle := time.NewTicker(time.Duration(hold))
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			emit(p.Idle(hooks.now().UnixNano()))
		case piece := <-pieces:
			at := hooks.now().UnixNano()
			if _, err := out.Write(piece.bytes); err != nil {
				return fmt.Errorf("passing on the engine's output: %w", err)
			}
			emit(p.Feed(piece.bytes, at))
			if errors.Is(piece.err, io.EOF) {
				return nil
			}
			if piece.err != nil {
				return fmt.Errorf("reading the engine's output: %w", piece.err)
			}
		}
	}
}

// A piece is what one read gave.
type piece struct {
	bytes []byte
	err   error
}

// readAll reads in a goroutine, into two buffers by turns: one is being read
// into while the other is written out. It ends with in or ctx.
func readAll(ctx context.Context, in io.Reader) <-chan piece {
	pieces := make(chan piece)
	go func() {
		var buffers [2][readSize]byte
		for i := 0; ; i ^= 1 {
			n, err := in.Read(buffers[i][:])
			select {
			case pieces <- piece{buffers[i][:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return pieces
}
