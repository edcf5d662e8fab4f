// Package reporting shows what a failure in the guest looks like on the host.
package reporting

import (
	"errors"
	"testing"

	"grayfail/lab/vm"
)

func TestReport(t *testing.T) {
	good := vm.Result{Package: "./good", Tests: []vm.Test{{Name: "TestGood", Output: "fine\n"}}}
	good.Report(t)
	bad := vm.Result{Package: "./bad", Tests: []vm.Test{
		{Name: "TestA", Output: "fine\n"},
		{Name: "TestA/x/y", Output: "not fine\n", Failed: true},
	}}
	bad.Report(t)
	dead := vm.Result{Package: "./dead", Err: errors.New("no test ran"), Output: "panic: at once\n"}
	dead.Report(t)
}
