package llamalog

import (
	"bytes"
	"strings"

	"grayfail/collector/engine"
)

// unknownModel stands where nothing says which model it is.
const unknownModel = "unknown"

// modelOfPath names a model after its file: "/models/qwen2.5-0.5b.gguf'" is
// qwen2.5-0.5b.
func modelOfPath(text []byte) string {
	path, _, _ := bytes.Cut(text, []byte("'"))
	name := string(path[bytes.LastIndexByte(path, '/')+1:])
	return cleanModel([]byte(strings.TrimSuffix(name, ".gguf")))
}

func cleanModel(name []byte) string { return engine.CleanName(string(name), engine.MaxModel) }

// model is the model of a stream's requests: the configured one, else the
// name that a router uses, else the file's.
func (p *Parser) model(s *stream) string {
	for _, name := range []string{p.config.Model, s.Named, s.Model} {
		if name != "" {
			return name
		}
	}
	return unknownModel
}
