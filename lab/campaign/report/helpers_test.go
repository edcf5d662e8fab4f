package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// golden compares with testdata/name, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got, -update rewrites):\n%s", path, diff)
	}
}

func read(t *testing.T, name string) Runs {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// small is the method of testdata/small: written by hand, so that every figure
// can be checked on paper.
func small() Method {
	return Method{
		Name: "small", Question: "Does a request slow down when more of its packets are dropped?",
		SpecHash: "sha256:1f0c", OrderSeed: 7, Planned: 18, Blocks: 6, SlowBelow: 0.5,
		Conditions: []string{"none", "loss-5", "dead"}, Control: "none",
		Details:  []string{"60 tokens a request, one at a time."},
		Criteria: []Criterion{{Condition: "loss-5", Evidence: DropFraction, Op: "<=", Rho: -0.40}},
	}
}

func analysed(t *testing.T, m Method, runs Runs) *Results {
	t.Helper()
	res, err := Analyse(m, runs)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func ptr[T any](v T) *T { return &v }
