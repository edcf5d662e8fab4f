package vm

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed fetch.sh
var fetchScript string

//go:embed twoport/twoport.c
var twoportSource string

// kernel is the unpacked kernel of the guest.
type kernel struct {
	release string
	dir     string // holds boot and lib/modules
	headers string // holds what a module build needs
}

// kernel fetches the kernel if it is not there.
func (p *place) kernel(ctx context.Context) (*kernel, error) {
	if _, err := command(ctx, "", "bash", "-c", fetchScript, "fetch.sh", p.dir); err != nil {
		return nil, fmt.Errorf("the kernel could not be fetched: %w", err)
	}
	version, err := os.ReadFile(filepath.Join(p.dir, "version"))
	if err != nil {
		return nil, err
	}
	release := strings.TrimSpace(string(version))
	return &kernel{
		release: release,
		dir:     filepath.Join(p.dir, "kernel"),
		headers: filepath.Join(p.dir, "headers/usr/src/linux-headers-"+release),
	}, nil
}

// twoport builds the module of the two-port device and returns its path. The
// name of its folder tells source and kernel.
func (p *place) twoport(ctx context.Context, k *kernel) (string, error) {
	sum := sha256.Sum256([]byte(k.release + twoportSource))
	dir := filepath.Join(p.dir, fmt.Sprintf("twoport-%x", sum[:6]))
	module := filepath.Join(dir, "twoport.ko")
	if _, err := os.Stat(module); err == nil {
		return module, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string]string{"twoport.c": twoportSource, "Kbuild": "obj-m := twoport.o\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	_, err := command(ctx, dir, "make", "-s", "-C", k.headers, "M="+dir, "modules")
	if err != nil {
		err = fmt.Errorf("the two-port device could not be built (Debian packages gcc and make): %w", err)
	}
	return module, err
}

// verbsScript unpacks Debian's user-space drivers and test programs of RDMA;
// nothing is installed.
const verbsScript = `set -euo pipefail
rm -rf "$1" "$1.new" && mkdir -p "$1.new/debs" && cd "$1.new/debs"
get() { apt-get -o APT::Sandbox::User=root download ibverbs-utils ibverbs-providers >&2; }
get || { apt-get update -qq >&2; get; }
for deb in *.deb; do dpkg -x "$deb" ..; done
cd / && rm -rf "$1.new/debs" && mv "$1.new" "$1"`

// verbs is the folder with usr/bin/ibv_rc_pingpong and the drivers; they are
// fetched if they are not there.
func (p *place) verbs(ctx context.Context) (string, error) {
	dir := filepath.Join(p.dir, "verbs")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	_, err := command(ctx, "", "bash", "-c", verbsScript, "verbs", dir)
	if err != nil {
		err = fmt.Errorf("ibverbs-utils and ibverbs-providers could not be fetched: %w", err)
	}
	return dir, err
}
