package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// standinEngine runs cmd/standin in the place of llama.cpp.
type standinEngine struct {
	shape  StandinShape
	binary string
}

// prepare builds the program; Go's build cache makes that cheap.
func (e *standinEngine) prepare(ctx context.Context, o *Options) (string, error) {
	root, err := Root()
	if err != nil {
		return "", fmt.Errorf("stand-in: %w", err)
	}
	e.binary = filepath.Join(o.Dir, "run", o.Instance, "standin")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", e.binary, "./lab/cmd/standin")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := output(cmd); err != nil {
		return "", fmt.Errorf("stand-in: %w", err)
	}
	return fmt.Sprintf("STAND-IN, not an inference engine (%v a token)", e.shape.TokenTime), nil
}

func (e *standinEngine) worker(l Link) Command {
	return Command{
		Name: "standin-" + l.Leg, Namespace: l.Worker, Grace: 2 * time.Second,
		Argv: []string{e.binary, "worker", "--listen", l.Peer().String()},
	}
}

func (e *standinEngine) coordinator(ns Namespace, legs []Link, slots int) Command {
	argv := []string{
		e.binary, "server", "--listen", "127.0.0.1:" + strconv.Itoa(EnginePort), "--slots", strconv.Itoa(slots),
		"--token-time", e.shape.TokenTime.String(), "--prompt-tokens", strconv.Itoa(e.shape.PromptTokensPerToken),
	}
	for i, l := range legs {
		argv = append(argv, "--leg", fmt.Sprintf("%s,%d,%d", l.Peer(), e.shape.RequestBytes[i], e.shape.ReplyBytes[i]))
	}
	return Command{Name: "standin-server", Namespace: ns, Argv: argv}
}
