package lab

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"grayfail/lab/gguf"
)

// An engine gives the commands of a coordinator and its workers.
type engine interface {
	// prepare makes what the commands need and returns what to call it.
	prepare(ctx context.Context, o *Options) (version string, err error)
	worker(l Link) Command
	coordinator(ns Namespace, legs []Link, slots int) Command
}

// llama is the real llama.cpp in a folder of its own, run by chroot.
type llama struct {
	root  string // of the unpacked packages
	model string // as seen inside root
}

//go:embed engine.sh
var unpackScript string

func (e *llama) prepare(ctx context.Context, o *Options) (string, error) {
	e.root = filepath.Join(o.Dir, "engine")
	stamp := filepath.Join(e.root, ".complete")
	if _, err := os.Stat(stamp); err != nil {
		fmt.Fprintln(o.Log, "engine: unpacking llama.cpp from Debian's packages")
		if err := unpack(ctx, e.root); err != nil {
			return "", fmt.Errorf("engine: %w", err)
		}
	}
	version, err := os.ReadFile(stamp)
	if err != nil {
		return "", err
	}
	return "llama.cpp " + strings.TrimSpace(string(version)), e.makeModel(gguf.Lab)
}

// unpack runs engine.sh in pid and mount namespaces of its own: whatever ends
// it, no process and no mount of it stays.
func unpack(ctx context.Context, root string) error {
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return err
	}
	runtime.LockOSThread() // the death signal belongs to the starting thread
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--",
		"bash", "-c", unpackScript, "engine.sh", root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	cmd.Stderr = &said
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("the real llama.cpp could not be unpacked: %w: %s; set ENGINE=standin to run the labelled stand-in", err, lastLines(said.String(), 3))
	}
	return cmp.Or(ctx.Err(), err) // an interrupt is no advice to give
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// makeModel writes the model once; its name tells its shape.
func (e *llama) makeModel(s gguf.Shape) error {
	e.model = fmt.Sprintf("/tmp/lab-%dx%dx%d.gguf", s.Embedding, s.FeedForward, s.Layers)
	path := filepath.Join(e.root, e.model)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "model-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := gguf.Write(f, s); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// inRoot mounts proc and dev inside root, in a mount namespace that ends with
// the process, and becomes the program.
const inRoot = `mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" "$@"`

func (e *llama) chroot(argv ...string) []string {
	return append([]string{"unshare", "--mount", "--propagation", "private", "--", "sh", "-c", inRoot, e.root}, argv...)
}

func (e *llama) worker(l Link) Command {
	return Command{
		Name: l.Leg, Namespace: l.Worker, Grace: 2 * time.Second,
		Argv: e.chroot("/usr/libexec/x86_64-linux-gnu/llama/bin/ggml-rpc-server",
			"-H", l.WorkerAddr.Addr().String(), "-p", strconv.Itoa(RPCPort), "-t", "1"),
	}
}

func (e *llama) coordinator(ns Namespace, legs []Link, slots int) Command {
	var peers []string
	for _, l := range legs {
		peers = append(peers, l.Peer().String())
	}
	return Command{
		Name: "llama-server", Namespace: ns,
		Argv: e.chroot("/usr/bin/llama-server", "-m", e.model, "--alias", "lab-random",
			"--rpc", strings.Join(peers, ","), "-ngl", "99",
			"--host", "127.0.0.1", "--port", strconv.Itoa(EnginePort), "--metrics", "--slots",
			"-np", strconv.Itoa(slots), "-t", "1", "-c", strconv.Itoa(1024*slots)),
	}
}
