// Package spec is what host and guest of a test VM tell each other: in goes
// the Job that the host writes, out come the Results that the guest writes.
package spec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// Names in the directory that host and guest share.
const (
	JobFile     = "job.json"
	ResultsFile = "results.json"
	// Share is where the guest mounts it.
	Share = "/.vm"
	// TagRoot and TagShare are the mount tags of the two 9p exports.
	TagRoot, TagShare = "hostroot", "share"
)

// Job is what one boot does.
type Job struct {
	// KernelDir holds lib/modules of the guest's kernel: a path of the host.
	KernelDir string
	// Modules are loaded before the first step.
	Modules []string
	Steps   []Step
}

// Step is one program.
type Step struct {
	Name string
	Argv []string
	Env  []string // "NAME=value", added to the guest's
	Dir  string
	// Output is the file in the shared directory that gets standard output
	// and standard error.
	Output  string
	Timeout time.Duration
}

// Results is what came of a Job.
type Results struct {
	Kernel string // uname -r
	// Error says why the steps could not be run at all.
	Error string
	Steps []Result
}

// Result of a Step.
type Result struct {
	Name string
	// Exit is the exit status; -1 when it could not be started, was killed or
	// ran out of time, and Error says which.
	Exit  int
	Error string
}

// Write stores v as JSON, whole or not at all.
func Write(dir, name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Read loads what Write stored.
func Read(dir, name string, v any) error {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
