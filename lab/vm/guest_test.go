package vm_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab/vm"
)

// The expectations of tests that name a PID or a GUID change with the fixtures.
var capture = flag.String("capture", "", "replace the fixtures in this `folder` of the module (or below) by what the guest has captured")

const failing = "./lab/vm/testdata/failing"

// TestGuest is the one boot of the test command: all that needs the guest runs
// in it.
func TestGuest(t *testing.T) {
	outcome, remove, err := vm.Boot(t.Context(), vm.Job{
		Programs: map[string]string{"VM_AGENT": "./lab/vm/rdmalab/agent", "VM_EXPORTER": "./cmd/grayfail_exporter"},
		Timeout:  7 * time.Minute, // scripts/test.sh allows a package 8
		Steps: []vm.Step{
			{Package: failing},
			{Package: "./lab/vm/rdmalab"},
			{Package: "./lab/campaign/runner"},
			{Package: "./collector/rdma/nldev"},
			{Package: "./collector/rdma", Timeout: 4 * time.Minute},
			{Package: "./cmd/grayfail_exporter", Timeout: 6 * time.Minute},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	t.Logf("kernel %s", outcome.Kernel)
	for i := range outcome.Results {
		if r := &outcome.Results[i]; r.Package == failing {
			checkFailing(t, r)
		} else {
			r.Report(t)
		}
	}
	if *capture != "" && !t.Failed() {
		replaceFixtures(t, filepath.Join(outcome.Share, "captured"), "../..")
	}
}

// replaceFixtures copies what tests in the guest have written below the name
// of its place in the module.
func replaceFixtures(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(name, *capture) {
			testkit.WriteFile(t, filepath.Join(to, name), b)
			t.Log("captured", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkFailing: whatever goes wrong in the guest is told, with its output.
func checkFailing(t *testing.T, r *vm.Result) {
	t.Helper()
	want := map[string]struct {
		failed bool
		output string
	}{
		"TestGuestPasses":             {false, "seen in the guest: true"},
		"TestGuestFails":              {true, ""},
		"TestGuestFails/with/a_slash": {true, "one is not two"},
		"TestGuestFails/good":         {false, ""},
		"TestGuestSkips":              {true, "no such device"},
		"TestGuestDies":               {true, "last words"},
	}
	for _, got := range r.Tests {
		w, known := want[got.Name]
		if !known || got.Failed != w.failed || !strings.Contains(got.Output, w.output) {
			t.Errorf("%+v, want failed %t and %q", got, w.failed, w.output)
		}
		delete(want, got.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v in %+v", want, r.Tests)
	}
}
