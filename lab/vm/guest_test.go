package vm_test

import (
	"strings"
	"testing"

	"grayfail/lab/vm"
)

const failing = "./lab/vm/testdata/failing"

// TestGuest is the one boot of the test command: all that needs the guest runs
// in it.
func TestGuest(t *testing.T) {
	outcome, remove, err := vm.Boot(t.Context(), vm.Job{
		Programs: map[string]string{"VM_AGENT": "./lab/vm/rdmalab/agent"},
		Steps: []vm.Step{
			{Package: failing},
			{Package: "./lab/vm/rdmalab"},
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
}

// checkFailing: whatever goes wrong in the guest is told, with its output.
func checkFailing(t *testing.T, r *vm.Result) {
	t.Helper()
	want := map[string]struct {
		failed bool
		output string
	}{
		"TestPasses":             {false, "seen in the guest: true"},
		"TestFails":              {true, ""},
		"TestFails/with/a_slash": {true, "one is not two"},
		"TestFails/good":         {false, ""},
		"TestSkips":              {true, "no such device"},
		"TestDies":               {true, "last words"},
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
