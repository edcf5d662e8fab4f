package vm

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestParseEvents(t *testing.T) {
	// What test2json makes of a binary that passes, fails, skips and dies.
	const text = `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Test":"TestA/x"}
{"Action":"output","Test":"TestA/x","Output":"wrong\n"}
{"Action":"fail","Test":"TestA/x"}
{"Action":"fail","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"skip","Test":"TestB"}
{"Action":"run","Test":"TestC"}
{"Action":"pass","Test":"TestC"}
{"Action":"run","Test":"TestD"}
{"Action":"output","Output":"panic: oh\n"}
{"Action":"fail"}
`
	tests, rest, err := parseEvents(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []Test{
		{Name: "TestA", Output: "=== RUN   TestA\n", Failed: true},
		{Name: "TestA/x", Output: "wrong\n", Failed: true},
		{Name: "TestB", Output: "skipped: what cannot run in the guest has failed there\n", Failed: true},
		{Name: "TestC"},
		{Name: "TestD", Output: "never ended\n", Failed: true},
	}
	if len(tests) != len(want) {
		t.Fatalf("%d tests, want %d: %+v", len(tests), len(want), tests)
	}
	for i := range want {
		if tests[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, tests[i], want[i])
		}
	}
	if rest != "panic: oh\n" {
		t.Errorf("rest: %q", rest)
	}
	if _, _, err := parseEvents("not JSON\n"); err == nil {
		t.Error("no error for what is not JSON")
	}
}

// A failure in the guest is a failure on the host, in a subtest of that name,
// with the guest's words.
func TestReport(t *testing.T) {
	cmd := exec.Command("go", "test", "-count=1", "-v", "./testdata/reporting")
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("go test says ok:\n%s", out)
	}
	for _, want := range []string{
		"--- PASS: TestReport/good/TestGood",
		"--- PASS: TestReport/bad/TestA/x/y", // must not be there: see below
		"--- FAIL: TestReport/bad/TestA/x/y",
		"not fine",
		"--- FAIL: TestReport/dead",
		"panic: at once",
	} {
		if got, there := strings.Contains(string(out), want), !strings.HasPrefix(want, "--- PASS: TestReport/bad/TestA/x"); got != there {
			t.Errorf("%q: %t, want %t in\n%s", want, got, there, out)
		}
	}
}
