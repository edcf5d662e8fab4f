package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// keyValues collects metadata pairs.
type keyValues struct {
	b []byte
	n int
}

func (m *keyValues) key(k string, typ uint32) {
	m.n++
	m.b = binary.LittleEndian.AppendUint32(appendString(m.b, k), typ)
}

func (m *keyValues) u32(k string, v int) {
	m.key(k, kvUint32)
	m.b = binary.LittleEndian.AppendUint32(m.b, uint32(v))
}

func (m *keyValues) f32(k string, v float32) {
	m.key(k, kvFloat32)
	m.b = binary.LittleEndian.AppendUint32(m.b, math.Float32bits(v))
}

func (m *keyValues) str(k, v string) {
	m.key(k, kvString)
	m.b = appendString(m.b, v)
}

func (m *keyValues) array(k string, typ uint32, n int, item func(b []byte, i int) []byte) {
	m.key(k, kvArray)
	m.b = binary.LittleEndian.AppendUint32(m.b, typ)
	m.b = binary.LittleEndian.AppendUint64(m.b, uint64(n))
	for i := range n {
		m.b = item(m.b, i)
	}
}

func (s Shape) metadata() keyValues {
	var m keyValues
	m.str("general.architecture", "llama")
	m.str("general.name", "lab-random")
	m.u32("general.file_type", 1) // mostly F16
	m.u32("llama.block_count", s.Layers)
	m.u32("llama.context_length", context)
	m.u32("llama.embedding_length", s.Embedding)
	m.u32("llama.feed_forward_length", s.FeedForward)
	m.u32("llama.vocab_size", s.Vocabulary)
	m.u32("llama.attention.head_count", heads)
	m.u32("llama.attention.head_count_kv", heads)
	m.f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
	m.u32("llama.rope.dimension_count", s.Embedding/heads)
	m.str("tokenizer.ggml.model", "llama")
	m.str("tokenizer.ggml.pre", "default")
	m.array("tokenizer.ggml.tokens", kvString, s.Vocabulary, func(b []byte, i int) []byte { return appendString(b, token(i)) })
	m.array("tokenizer.ggml.scores", kvFloat32, s.Vocabulary, func(b []byte, i int) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(-float32(i)))
	})
	m.array("tokenizer.ggml.token_type", kvInt32, s.Vocabulary, func(b []byte, i int) []byte {
		return binary.LittleEndian.AppendUint32(b, uint32(tokenType(i)))
	})
	m.u32("tokenizer.ggml.unknown_token_id", 0)
	m.u32("tokenizer.ggml.bos_token_id", 1)
	m.u32("tokenizer.ggml.eos_token_id", 2)
	return m
}

// The vocabulary of a SentencePiece model: specials, the 256 bytes, words.
const bytesEnd = 3 + 256

func token(i int) string {
	switch {
	case i == 0:
		return "<unk>"
	case i == 1:
		return "<s>"
	case i == 2:
		return "</s>"
	case i < bytesEnd:
		return fmt.Sprintf("<0x%02X>", i-3)
	}
	return fmt.Sprintf("\u2581w%d", i-bytesEnd)
}

func tokenType(i int) int {
	switch {
	case i == 0:
		return tokenUnknown
	case i < 3:
		return tokenControl
	case i < bytesEnd:
		return tokenByte
	}
	return tokenNormal
}
