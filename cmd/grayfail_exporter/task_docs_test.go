package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// taskDocs are the pages that tell what to run for one task.
var taskDocs = []string{"llama-rpc-ethernet", "llama-rpc-roce", "vllm", "ollama", "kubernetes"}

// othersFlags belong to the programs that we stand beside.
var othersFlags = []string{
	"--rpc",                          // llama.cpp
	"--enable-prompt-tokens-details", // vLLM
	"--otlp-traces-endpoint",
}

var (
	fence      = regexp.MustCompile("(?ms)^```([a-z ]*)\n(.*?)^```$")
	metricName = regexp.MustCompile(`\bgrayfail_[a-z0-9_]+`)
	longFlag   = regexp.MustCompile(`(?:^|[\s` + "`" + `(])(--[a-z][a-z0-9.-]+)`)
	command    = regexp.MustCompile(`grayfail_exporter (serve|legs|replay|push|check-config)`)
)

func taskDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// self runs this program and returns what it says and whether it ended with 0.
func self(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "GRAYFAIL_EXPORTER_MAIN=1")
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestTaskDocsHaveTheirParts(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range taskDocs {
		text := taskDoc(t, name)
		at := 0
		for _, part := range []string{"## What to run", "## What you will see", "## What we cannot see there", "## First checks"} {
			i := strings.Index(text, "\n"+part+"\n")
			if i < at {
				t.Errorf("%s: %q is missing or not in its place", name, part)
			}
			at = i
		}
		if !strings.Contains(string(readme), "(docs/"+name+".md)") {
			t.Errorf("the README does not lead to %s", name)
		}
	}
}

// TestTaskDocsConfigurations: a block of yaml is a configuration of ours, or
// what its fence says beside.
func TestTaskDocsConfigurations(t *testing.T) {
	for _, name := range taskDocs {
		checked := 0
		for _, block := range fence.FindAllStringSubmatch(taskDoc(t, name), -1) {
			file := filepath.Join(t.TempDir(), "file.yml")
			if err := os.WriteFile(file, []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			switch block[1] {
			case "yaml":
				checked++
				if out, ok := self(t, "check-config", file); !ok {
					t.Errorf("%s: %s%s", name, block[2], out)
				}
			case "yaml prometheus":
				testkit.Run(t, "promtool", "check", "config", file)
			case "":
			default:
				t.Errorf("%s: a block of %q", name, block[1])
			}
		}
		if checked == 0 {
			t.Errorf("%s: no configuration", name)
		}
	}
}

func TestTaskDocsMetrics(t *testing.T) {
	reference := taskDoc(t, "metrics")
	for _, name := range taskDocs {
		n := 0
		for _, m := range metricName.FindAllString(taskDoc(t, name), -1) {
			if m == "grayfail_exporter" {
				continue
			}
			n++
			if !strings.Contains(reference, "| `"+m+"` |") {
				t.Errorf("%s: %s is no metric", name, m)
			}
		}
		if n < 5 {
			t.Errorf("%s: only %d metrics", name, n)
		}
	}
}

// TestTaskDocsFlags: a flag on a line with a command of ours is one of that
// command; any other is of some command, or of another program.
func TestTaskDocsFlags(t *testing.T) {
	help, all := make(map[string]string), ""
	for _, c := range []string{"serve", "legs", "replay", "push", "check-config"} {
		out, ok := self(t, c, "--help")
		if !ok {
			t.Fatalf("%s --help: %s", c, out)
		}
		help[c], all = out, all+out
	}
	has := func(help, flag string) bool {
		return regexp.MustCompile(`(?m)^\s+(?:-\w, )?--(?:\[no-\])?` + regexp.QuoteMeta(flag[2:]) + `[=\s]`).MatchString(help)
	}
	for _, name := range taskDocs {
		n := 0
		for _, line := range strings.Split(taskDoc(t, name), "\n") {
			ours, at := all, len(line)
			if c := command.FindStringSubmatchIndex(line); c != nil {
				ours, at = help[line[c[2]:c[3]]], c[0]
			}
			for _, m := range longFlag.FindAllStringSubmatchIndex(line, -1) {
				flag := line[m[2]:m[3]]
				if m[2] < at && slices.Contains(othersFlags, flag) {
					continue
				}
				n++
				if !has(ours, flag) {
					t.Errorf("%s: %s has no flag %s", name, line, flag)
				}
			}
		}
		if n == 0 {
			t.Errorf("%s: no flag", name)
		}
	}
	if has(all, "--config") || has(all, "--stat") {
		t.Error("parts of flags pass")
	}
}
