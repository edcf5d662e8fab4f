package vm

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"grayfail/lab/vm/internal/spec"
)

// Job is what one boot does.
type Job struct {
	// Modules of the kernel are loaded before the first step.
	Modules []string
	// Steps run one after another; a failed one does not keep the next from
	// running.
	Steps []Step
	// Programs maps names of environment variables to packages of commands:
	// they are built, static, and each step finds their paths in its
	// environment.
	Programs map[string]string
	// Env is added to the environment of each step: "NAME=value".
	Env []string
	// Timeout of the whole boot, default 4 minutes: an emulated kernel takes
	// 10 to 40 s to start on a busy machine.
	Timeout time.Duration
}

// Step runs the tests of one package whose names begin with TestGuest, built
// with the tag "guest" and without cgo, in the guest and in the package's
// folder. Their environment names VM_SHARE,
// a folder for files that the host is to see, VM_TWOPORT, the module of the
// two-port device, and VM_VERBS, Debian's RDMA drivers and programs (see
// rdmalab.PingPong).
type Step struct {
	// Package as "go test" takes it, relative to the module: "./lab/vm/rdmalab".
	Package string
	// Args are added to the test binary's: "-test.run=...".
	Args []string
	// Timeout, default 2 minutes.
	Timeout time.Duration
}

// Result of a Step.
type Result struct {
	Package string
	// Tests in the order in which they began.
	Tests []Test
	// Output that belongs to no test, and all of it if the binary did not say
	// what its tests did.
	Output string
	// Err says why the step failed as a whole: it did not start, died, ran out
	// of time, or held no test.
	Err error
}

// Outcome is what a boot brought back.
type Outcome struct {
	Kernel  string // uname -r
	Results []Result
	// Share is the folder the guest could write to.
	Share string
}

// Boot runs a job. Every run has a folder of its own below .lab/vm; remove
// takes it away.
func Boot(ctx context.Context, job Job) (outcome *Outcome, remove func(), err error) {
	p, err := open(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer p.close()
	p.removeOld()
	share, err := os.MkdirTemp(p.dir, "run-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(share) }
	if outcome, err = p.run(ctx, job, share); err != nil {
		remove()
		return nil, nil, err
	}
	return outcome, remove, nil
}

func (p *place) run(ctx context.Context, job Job, share string) (*Outcome, error) {
	k, err := p.kernel(ctx)
	if err != nil {
		return nil, err
	}
	twoport, err := p.twoport(ctx, k)
	if err != nil {
		return nil, err
	}
	verbs, err := p.verbs(ctx)
	if err != nil {
		return nil, err
	}
	guest := filepath.Join(share, "guest")
	if err := p.build(ctx, guest, "./lab/vm/guest"); err != nil {
		return nil, err
	}
	env := append([]string{"VM_SHARE=" + spec.Share, "VM_TWOPORT=" + twoport, "VM_VERBS=" + verbs}, job.Env...)
	for name, pkg := range job.Programs {
		path := filepath.Join(share, filepath.Base(pkg))
		if err := p.build(ctx, path, pkg); err != nil {
			return nil, err
		}
		env = append(env, name+"="+path)
	}
	out := spec.Job{KernelDir: k.dir, Modules: job.Modules}
	for i, s := range job.Steps {
		binary := filepath.Join(share, fmt.Sprintf("%02d.test", i))
		if _, err := p.goTool(ctx, "test", "-c", "-tags", "guest", "-o", binary, s.Package); err != nil {
			return nil, err
		}
		timeout := cmp.Or(s.Timeout, 2*time.Minute)
		out.Steps = append(out.Steps, spec.Step{
			Name: s.Package, Env: env, Dir: filepath.Join(p.module, s.Package),
			Argv:   append([]string{binary, "-test.v=test2json", "-test.run=^TestGuest", "-test.timeout=" + timeout.String()}, s.Args...),
			Output: fmt.Sprintf("%02d.out", i),
			// The binary's own timeout comes first: it says what hangs.
			Timeout: timeout + timeout/10,
		})
	}
	if err := spec.Write(share, spec.JobFile, out); err != nil {
		return nil, err
	}
	initramfs := filepath.Join(share, "initramfs.gz")
	if err := k.initramfs(ctx, guest, initramfs); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(job.Timeout, 4*time.Minute))
	defer cancel()
	results, err := k.boot(ctx, initramfs, share, filepath.Join(share, "console"))
	if err != nil {
		return nil, err
	}
	outcome := &Outcome{Kernel: results.Kernel, Share: share}
	for i := range results.Steps {
		r, err := p.read(ctx, &results.Steps[i], filepath.Join(share, out.Steps[i].Output))
		if err != nil {
			return nil, err
		}
		outcome.Results = append(outcome.Results, r)
	}
	if len(outcome.Results) != len(job.Steps) {
		return nil, fmt.Errorf("VM: %d of %d steps ran", len(outcome.Results), len(job.Steps))
	}
	return outcome, nil
}

// removeOld removes what runs that were killed have left.
func (p *place) removeOld() {
	old, _ := filepath.Glob(filepath.Join(p.dir, "run-*")) // the pattern is ours
	for _, dir := range old {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > 2*time.Hour {
			_ = os.RemoveAll(dir)
		}
	}
}

// build builds a command that needs nothing of the guest.
func (p *place) build(ctx context.Context, path, pkg string) error {
	_, err := p.goTool(ctx, "build", "-o", path, pkg)
	return err
}

func (p *place) goTool(ctx context.Context, args ...string) (string, error) {
	out, err := command(ctx, p.module, append([]string{"env", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "go"}, args...)...)
	if err != nil {
		err = fmt.Errorf("go %s: %w", strings.Join(args[:2], " "), err)
	}
	return out, err
}
