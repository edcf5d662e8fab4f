package gguf

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// TestWrite reads the head back and checks that the last tensor ends the file.
func TestWrite(t *testing.T) {
	shape := Shape{Embedding: 16, FeedForward: 32, Layers: 2, Vocabulary: 300}
	var buf, again bytes.Buffer
	for _, b := range []*bytes.Buffer{&buf, &again} {
		if err := Write(b, shape); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(buf.Bytes(), again.Bytes()) {
		t.Error("the same shape gave two files")
	}
	data := buf.Bytes()
	if string(data[:4]) != "GGUF" || binary.LittleEndian.Uint32(data[4:]) != 3 {
		t.Fatalf("head %q", data[:8])
	}
	tensors := shape.tensors()
	if got := binary.LittleEndian.Uint64(data[8:]); got != uint64(len(tensors)) {
		t.Errorf("%d tensors in the head, want %d", got, len(tensors))
	}
	body := 0
	for _, x := range tensors {
		body += padded(x.size())
	}
	last := []byte("blk.1.ffn_down.weight")
	at := bytes.Index(data, last)
	if at < 0 {
		t.Fatal("last tensor is not described")
	}
	// name, number of dimensions (4), two dimensions (8 each), type (4), offset (8)
	info := data[at+len(last):]
	offset := binary.LittleEndian.Uint64(info[4+16+4:])
	if want := body - padded(tensors[len(tensors)-1].size()); offset != uint64(want) {
		t.Errorf("last tensor at %d, want %d", offset, want)
	}
	head := padded(at + len(last) + 4 + 16 + 4 + 8)
	if len(data) != head+body {
		t.Errorf("file of %d bytes, want head %d + tensors %d", len(data), head, body)
	}
}

func TestHalf(t *testing.T) {
	for _, c := range []struct {
		in   float64
		want uint16
	}{{1, 0x3c00}, {-2, 0xc000}, {0.5, 0x3800}, {0, 0}, {1e-6, 0}, {1.0 / 3, 0x3555}, {math.Copysign(0, -1), 0x8000}} {
		if got := half(c.in); got != c.want {
			t.Errorf("half(%g) = %#04x, want %#04x", c.in, got, c.want)
		}
	}
}
