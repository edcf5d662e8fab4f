package ebpf

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

// TestGenerated makes the object and its Go file again, by the command in
// generate.go, and compares them with what is committed: byte by byte with the
// clang that made them, else by what the object declares.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	regenerate(t, dir)
	recorded := strings.TrimSpace(string(read(t, "clang.version")))
	if installed := clangMajor(t); installed != recorded {
		t.Logf("clang %s is installed, the committed object is by clang %s: comparing programs and maps only", installed, recorded)
		got, want := declarations(t, filepath.Join(dir, "probes_bpfel.o")), declarations(t, "probes_bpfel.o")
		if d := diff(want, got); d != "" {
			t.Errorf("the committed object is not of these sources (run go generate ./ebpf): %s", d)
		}
		return
	}
	for _, name := range []string{"probes_bpfel.go", "probes_bpfel.o"} {
		if !bytes.Equal(read(t, name), read(t, filepath.Join(dir, name))) {
			t.Errorf("%s is not what its sources make: run go generate ./ebpf", name)
		}
	}
}

// regenerate runs the go:generate line of generate.go into another directory.
func regenerate(t *testing.T, dir string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^//go:generate (.*bpf2go) (.*)$`).FindSubmatch(read(t, "generate.go"))
	if line == nil {
		t.Fatal("generate.go has no bpf2go line")
	}
	command := append(strings.Fields(string(line[1])), "-output-dir", dir)
	command = append(command, strings.Fields(string(line[2]))...)
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

func clangMajor(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("clang", "-dumpversion").Output()
	if err != nil {
		t.Fatalf("clang -dumpversion: %v", err)
	}
	major, _, _ := strings.Cut(strings.TrimSpace(string(out)), ".")
	return major
}

// declarations lists the programs, maps and variables of an object.
func declarations(t *testing.T, file string) map[string]string {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, p := range spec.Programs {
		all["program "+name] = fmt.Sprintf("%v in %s, license %s", p.Type, p.SectionName, p.License)
	}
	for name, m := range spec.Maps {
		all["map "+name] = fmt.Sprintf("%v key %d value %d entries %d flags %d", m.Type, m.KeySize, m.ValueSize, m.MaxEntries, m.Flags)
	}
	for name, v := range spec.Variables {
		all["variable "+name] = fmt.Sprintf("%d bytes", v.Size())
	}
	return all
}

// TestDeclarations: what the other compiler's comparison looks at is there.
func TestDeclarations(t *testing.T) {
	all := declarations(t, "probes_bpfel.o")
	for _, name := range []string{"program send_locked", "program receive", "map sockets", "map events", "variable send_hook_after"} {
		if all[name] == "" {
			t.Errorf("%s is missing in %v", name, all)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
