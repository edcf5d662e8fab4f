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

// learn takes over what another parser knows of the engines that write, but
// nothing of what they do.
func (p *Parser) learn(from *Parser) {
	for origin, known := range from.streams {
		if s := p.stream(origin, known.now.atNS); s != nil {
			s.Model, s.Named, s.Server = known.Model, known.Named, known.Server
		}
	}
}

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
