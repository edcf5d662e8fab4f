package engine

import (
	"net/http"
	"strings"
)

// inference lists the ends of paths at which a POST asks for generated
// tokens; what stands before them is the deployment's own (/v1, /api/v1, a
// router's prefix).
var inference = []string{
	"/chat/completions", // OpenAI chat
	"/completions",      // OpenAI completions, llama.cpp native
	"/completion",       // llama.cpp native
	"/infill",           // llama.cpp native
	"/responses",        // OpenAI responses
	"/v1/messages",      // Anthropic messages
	"/api/generate",     // Ollama
	"/api/chat",         // Ollama
	"/generate_stream",  // TGI
}

// Inference says whether a request asks an engine to generate. Everything
// else (models, health, embeddings, metrics, slots) only passes.
func Inference(method, path string) bool {
	if method != http.MethodPost {
		return false
	}
	if path == "/generate" { // TGI, SGLang; as an end it could be anything's
		return true
	}
	for _, end := range inference {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}
