package vm

import (
	"strings"
	"testing"
)

// Report makes subtests of t from what ran in the guest.
func (r *Result) Report(t *testing.T) {
	t.Helper()
	t.Run(strings.TrimPrefix(r.Package, "./"), func(t *testing.T) {
		r.report(t, "")
		if r.Err != nil {
			t.Errorf("%v\n%s", r.Err, r.Output)
		}
	})
}

// report runs a subtest for each test right below one, and so on.
func (r *Result) report(t *testing.T, above string) {
	for _, test := range r.Tests {
		if r.parent(test.Name) != above {
			continue
		}
		t.Run(strings.TrimPrefix(test.Name, above+"/"), func(t *testing.T) {
			if test.Failed {
				t.Errorf("in the guest:\n%s", test.Output)
			} else {
				t.Logf("in the guest:\n%s", test.Output)
			}
			r.report(t, test.Name)
		})
	}
}

// parent is the test that a subtest is part of, "" for a test function. A
// subtest's own name may hold slashes.
func (r *Result) parent(name string) string {
	best := ""
	for _, t := range r.Tests {
		if len(t.Name) > len(best) && strings.HasPrefix(name, t.Name+"/") {
			best = t.Name
		}
	}
	return best
}
