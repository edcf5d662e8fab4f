package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// EngineKind says what answers the requests.
type EngineKind string

const (
	// EngineLlama is the real llama.cpp, unpacked from Debian's packages.
	EngineLlama EngineKind = "llama.cpp"
	// EngineStandin is our own stand-in: the same shape on the wire and a token
	// time one can choose. Only for tests that need exact expected values, or on
	// the user's word; it is never chosen silently.
	EngineStandin EngineKind = "standin"
	// EngineNone leaves the namespaces and links without an engine: room for
	// programs whose costs are compared.
	EngineNone EngineKind = "none"
)

// EngineFromEnv reads ENGINE: unset means the real one.
func EngineFromEnv() (EngineKind, error) {
	switch e := EngineKind(os.Getenv("ENGINE")); e {
	case "", EngineLlama:
		return EngineLlama, nil
	case EngineStandin:
		return e, nil
	default:
		return "", fmt.Errorf("ENGINE=%s: allowed are %s, %s", e, EngineLlama, EngineStandin)
	}
}

// Options of a Cluster. The zero value of a field means its default.
type Options struct {
	// Instance is part of every name, so that several clusters can run at once:
	// one to eight lower-case letters and digits. Default "lab".
	Instance string
	// Dir keeps the unpacked engine between runs, and logs and state of this
	// one. Default: $LAB, else .lab in the project's root.
	Dir string
	// Engine; default EngineLlama.
	Engine EngineKind
	// Slots is how many requests the engine serves at once. Default 4.
	Slots int
	// Standin shapes the stand-in engine.
	Standin StandinShape
	// Relay puts a packet relay into each leg: only then can delay, reordering
	// and duplication be injected. It costs CPU, so it is off by default.
	Relay bool
	// Fair lets the engine compete for the cores with every other program. By
	// default it is scheduled before them (SCHED_RR), because a staged cluster
	// should be disturbed by what is injected and by nothing else: beside a
	// compiler on the same two cores a token takes up to six times as long.
	Fair bool
	// Log receives one line for each step that takes time. Default: nothing.
	Log io.Writer
}

// StandinShape is the stand-in's traffic and time per token.
type StandinShape struct {
	TokenTime            time.Duration // default 5 ms
	RequestBytes         [2]int        // to rpc-a and rpc-b; default 4,096 and 9,216
	ReplyBytes           [2]int        // default 2,048 and 128,000
	PromptTokensPerToken int           // prompt tokens computed in one token time; default 8
}

func (o *Options) setDefaults() error {
	if o.Instance == "" {
		o.Instance = "lab"
	}
	if !instancePattern.MatchString(o.Instance) {
		return fmt.Errorf("instance %q: one to eight of a-z and 0-9 are allowed", o.Instance)
	}
	if o.Engine == "" {
		o.Engine = EngineLlama
	}
	if o.Slots == 0 {
		o.Slots = 4
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Dir == "" {
		dir, err := Dir()
		if err != nil {
			return err
		}
		o.Dir = dir
	}
	return o.Standin.setDefaults()
}

func (s *StandinShape) setDefaults() error {
	if s.TokenTime == 0 {
		s.TokenTime = 5 * time.Millisecond
	}
	for i := range 2 {
		if s.RequestBytes[i] == 0 {
			s.RequestBytes[i] = [2]int{4096, 9216}[i]
		}
		if s.ReplyBytes[i] == 0 {
			s.ReplyBytes[i] = [2]int{2048, 128000}[i]
		}
	}
	if s.PromptTokensPerToken == 0 {
		s.PromptTokensPerToken = 8
	}
	if s.TokenTime < 0 || min(s.RequestBytes[0], s.RequestBytes[1], s.ReplyBytes[0], s.ReplyBytes[1], s.PromptTokensPerToken) < 0 {
		return errors.New("stand-in shape: negative value")
	}
	return nil
}

// Dir is $LAB, else .lab in the project's root.
func Dir() (string, error) {
	if dir := os.Getenv("LAB"); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, ".lab"), nil
}

// Root is the folder of the project's go.mod, at or above the working one.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod at or above %s: run inside the project, or set LAB", dir)
		}
	}
}
