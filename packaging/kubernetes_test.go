package packaging_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"grayfail/internal/testkit"
)

var manifests = []string{"configmap", "daemonset", "service", "servicemonitor", "prometheusrule"}

func manifest(name string) string { return "kubernetes/" + name + ".yaml" }

// validator builds the command that holds manifests against the schemas.
func validator(t *testing.T) (validate func(files ...string) (string, error)) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "manifests")
	testkit.Run(t, "go", "-C", "kubernetes/manifests", "build", "-o", binary, ".")
	return func(files ...string) (string, error) {
		out, err := exec.Command(binary, append([]string{"validate", "kubernetes/schemas"}, files...)...).CombinedOutput()
		return string(out), err
	}
}

func TestManifestsAreValid(t *testing.T) {
	validate := validator(t)
	var files []string
	for _, name := range manifests {
		files = append(files, manifest(name))
	}
	there, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(there) != len(files) {
		t.Errorf("%d manifests are checked, %v are there", len(files), there)
	}
	out, err := validate(files...)
	if err != nil || strings.Count(out, ": valid\n") != len(files) {
		t.Errorf("%v\n%s", err, out)
	}
	t.Log(out)

	for _, c := range []struct{ file, old, wrong, says string }{
		{"daemonset", "hostNetwork: true", "hostNetwrok: true", "hostNetwrok"},
		{"daemonset", "hostPID: true", "hostPID: 1", "hostPID"},
		{"daemonset", "- name: grayfail\n        #", "- workingDir: /\n        #", "containers/0"},
		{"daemonset", "memory: 256Mi", "memory: 256 MiB", "limits/memory"},
		{"daemonset", "apps/v1", "extensions/v1beta1", "apiVersion"},
		{"service", "port: 10550", "port: metrics", "ports/0/port"},
		{"servicemonitor", "interval: 5s", "interval: 5 s", "endpoints/0/interval"},
		{"servicemonitor", "endpoints:", "endpoint:", "endpoint"},
		{"prometheusrule", "keep_firing_for: 5m", "keep_firing_for: 5 minutes", "keep_firing_for"},
		{"prometheusrule", "  expr: ", "  exp: ", "exp"},
		{"configmap", "grayfail.yml: |", "grayfail.yml: 7\n  x: |", "data/grayfail.yml"},
	} {
		text, err := os.ReadFile(manifest(c.file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), c.old) {
			t.Errorf("%s has no %q", c.file, c.old)
			continue
		}
		path := filepath.Join(t.TempDir(), c.file+".yaml")
		testkit.WriteFile(t, path, []byte(strings.Replace(string(text), c.old, c.wrong, 1)))
		if out, err := validate(path); err == nil || !strings.Contains(out, c.says) {
			t.Errorf("%s with %q: %v, and nothing about %s:\n%s", c.file, c.wrong, err, c.says, out)
		}
	}
}

// tree reads a manifest for questions such as at("spec", "ports", 0, "name").
type tree struct {
	t    *testing.T
	node any
}

func readManifest(t *testing.T, name string) tree {
	t.Helper()
	text, err := os.ReadFile(manifest(name))
	if err != nil {
		t.Fatal(err)
	}
	var node any
	if err := yaml.Unmarshal(text, &node); err != nil {
		t.Fatal(err)
	}
	return tree{t, node}
}

func (n tree) at(path ...any) tree {
	n.t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := n.node.(map[string]any)
			n.node = m[step]
		case int:
			list, _ := n.node.([]any)
			if step >= len(list) {
				n.t.Fatalf("%v: no element %d", path, step)
			}
			n.node = list[step]
		}
	}
	return n
}

func (n tree) String() string { return fmt.Sprint(n.node) }

// TestManifestsFitTogether: what a schema cannot know.
func TestManifestsFitTogether(t *testing.T) {
	ds, svc, mon := readManifest(t, "daemonset"), readManifest(t, "service"), readManifest(t, "servicemonitor")
	pod := ds.at("spec", "template")
	container := pod.at("spec", "containers", 0)
	for what, pair := range map[string][2]tree{
		"the DaemonSet's selector":   {ds.at("spec", "selector", "matchLabels"), pod.at("metadata", "labels")},
		"the Service's selector":     {svc.at("spec", "selector"), pod.at("metadata", "labels")},
		"the monitor's selector":     {mon.at("spec", "selector", "matchLabels"), svc.at("metadata", "labels")},
		"the Service's target port":  {svc.at("spec", "ports", 0, "targetPort"), container.at("ports", 0, "name")},
		"the monitor's port":         {mon.at("spec", "endpoints", 0, "port"), svc.at("spec", "ports", 0, "name")},
		"the liveness probe's port":  {container.at("livenessProbe", "httpGet", "port"), container.at("ports", 0, "name")},
		"the readiness probe's port": {container.at("readinessProbe", "httpGet", "port"), container.at("ports", 0, "name")},
		"the volume of the config":   {pod.at("spec", "volumes", 0, "configMap", "name"), readManifest(t, "configmap").at("metadata", "name")},
		"the memory limit, as Go's":  {container.at("env", 0, "value"), tree{t, strings.TrimPrefix(readUnit(t)["Environment"][0], "GOMEMLIMIT=")}},
	} {
		if got, want := pair[0].String(), pair[1].String(); got != want || want == "<nil>" {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	// The rules ask for job="grayfail", which jobLabel takes from the Service.
	label := mon.at("spec", "jobLabel").String()
	if got := svc.at("metadata", "labels", label).String(); got != "grayfail" {
		t.Errorf("job %q", got)
	}
	var want []string
	text, err := os.ReadFile("systemd/containers.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(readUnit(t).capabilities("CapabilityBoundingSet"), parseUnit(string(text)).capabilities("CapabilityBoundingSet")...) {
		want = append(want, strings.ToUpper(c))
	}
	if got := container.at("securityContext", "capabilities", "add").String(); got != fmt.Sprint(want) {
		t.Errorf("capabilities %s, want those of the unit with its drop-in: %v", got, want)
	}
}

// TestConfigMapIsAConfiguration, and the arguments are the unit's.
func TestConfigMapIsAConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grayfail.yml")
	testkit.WriteFile(t, path, []byte(readManifest(t, "configmap").at("data", "grayfail.yml").String()))
	binary := filepath.Join(packages(t), "grayfail_exporter_linux_"+runtime.GOARCH)
	if out := testkit.Run(t, binary, "check-config", path); !strings.HasSuffix(out, ": ok\n") {
		t.Error(out)
	}
	container := readManifest(t, "daemonset").at("spec", "template", "spec", "containers", 0)
	var command []string
	for _, part := range []tree{container.at("command"), container.at("args")} {
		for _, word := range part.node.([]any) {
			command = append(command, fmt.Sprint(word))
		}
	}
	if want := readUnit(t).command(""); !slices.Equal(command, want) {
		t.Errorf("%q, want the unit's %q", command, want)
	}
}
