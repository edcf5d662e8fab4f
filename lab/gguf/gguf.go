// Package gguf writes a model file with random weights.
//
// In: a Shape. Out: a llama-architecture GGUF (version 3, F16 weights, F32
// norms) with a made-up vocabulary. What it generates is gibberish; its speed,
// its RPC traffic and the size of its logits rows are a real engine's. The
// same shape gives the same bytes.
//
// Format: ggml/docs/gguf.md of llama.cpp.
package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// Shape of the model.
type Shape struct {
	Embedding   int // multiple of 8 heads x 2
	FeedForward int
	Layers      int
	Vocabulary  int // one logit of 4 bytes each: 32,000 make 128 kB a token
}

// Lab is a 47 MB model: about 220 tokens a second over two workers on two
// cores, so that a stall of one retransmission timeout dwarfs a token.
var Lab = Shape{Embedding: 256, FeedForward: 768, Layers: 8, Vocabulary: 32000}

const (
	heads     = 8
	context   = 4096
	alignment = 32
)

// Value types of metadata and of tensors (ggml.h, gguf.h).
const (
	kvUint32, kvInt32, kvFloat32, kvString, kvArray = 4, 5, 6, 8, 9

	tensorF32, tensorF16 = 0, 1
)

// Token types (llama.h, enum llama_token_type).
const (
	tokenNormal  = 1
	tokenUnknown = 2
	tokenControl = 3
	tokenByte    = 6
)

type tensor struct {
	name string
	dims []int
	typ  uint32
}

func (t tensor) size() int {
	n := 4
	if t.typ == tensorF16 {
		n = 2
	}
	for _, d := range t.dims {
		n *= d
	}
	return n
}

func (s Shape) tensors() []tensor {
	e, f, v := s.Embedding, s.FeedForward, s.Vocabulary
	all := []tensor{
		{"token_embd.weight", []int{e, v}, tensorF16},
		{"output_norm.weight", []int{e}, tensorF32},
		{"output.weight", []int{e, v}, tensorF16},
	}
	for i := range s.Layers {
		b := fmt.Sprintf("blk.%d.", i)
		all = append(all, tensor{b + "attn_norm.weight", []int{e}, tensorF32}, tensor{b + "ffn_norm.weight", []int{e}, tensorF32})
		for _, k := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			all = append(all, tensor{b + k + ".weight", []int{e, e}, tensorF16})
		}
		all = append(all,
			tensor{b + "ffn_gate.weight", []int{e, f}, tensorF16},
			tensor{b + "ffn_up.weight", []int{e, f}, tensorF16},
			tensor{b + "ffn_down.weight", []int{f, e}, tensorF16})
	}
	return all
}

// Write writes the model.
func Write(to io.Writer, s Shape) error {
	tensors := s.tensors()
	kv := s.metadata()
	head := []byte("GGUF")
	head = binary.LittleEndian.AppendUint32(head, 3)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(tensors)))
	head = binary.LittleEndian.AppendUint64(head, uint64(kv.n))
	head = append(head, kv.b...)
	offset := 0
	for _, t := range tensors {
		head = appendString(head, t.name)
		head = binary.LittleEndian.AppendUint32(head, uint32(len(t.dims)))
		for _, d := range t.dims {
			head = binary.LittleEndian.AppendUint64(head, uint64(d))
		}
		head = binary.LittleEndian.AppendUint32(head, t.typ)
		head = binary.LittleEndian.AppendUint64(head, uint64(offset))
		offset += padded(t.size())
	}

	w := bufio.NewWriterSize(to, 1<<20)
	_, _ = w.Write(pad(head)) // errors stick until Flush
	noise := weights()
	for i, t := range tensors {
		_, _ = w.Write(pad(t.data(noise, i)))
	}
	return w.Flush()
}

// data of the i-th tensor: ones for norms, else a stretch of noise that starts
// elsewhere for each tensor.
func (t tensor) data(noise []byte, i int) []byte {
	out := make([]byte, 0, t.size())
	if t.typ == tensorF32 {
		for range t.size() / 4 {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(1))
		}
		return out
	}
	for at := 2 * i % len(noise); len(out) < t.size(); at = 0 {
		out = append(out, noise[at:min(len(noise), at+t.size()-len(out))]...)
	}
	return out
}

// weights are half-precision numbers around 0 with a deviation of 0.02. Their
// count is prime to every row length, so no two rows are alike.
func weights() []byte {
	rnd := rand.New(rand.NewPCG(1, 1))
	var out []byte
	for range 65537 {
		out = binary.LittleEndian.AppendUint16(out, half(rnd.NormFloat64()*0.02))
	}
	return out
}

// half rounds towards zero to IEEE 754 binary16. Below its smallest normal
// number (6e-5) it gives zero: as a random weight that is good enough.
func half(f float64) uint16 {
	bits := math.Float32bits(float32(f))
	sign := uint16(bits >> 16 & 0x8000)
	exp := int(bits>>23&0xff) - 127 + 15
	if exp <= 0 {
		return sign
	}
	return sign | uint16(exp)<<10 | uint16(bits>>13&0x3ff)
}

func padded(n int) int { return (n + alignment - 1) / alignment * alignment }

func pad(b []byte) []byte { return append(b, make([]byte, padded(len(b))-len(b))...) }

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}
