package trial

import (
	"math"
	"testing"
)

func TestDifference(t *testing.T) {
	mean, se := Difference([]Pair{{With: 99, Without: 100}, {With: 97, Without: 100}, {With: 98, Without: 100}})
	if math.Abs(mean+0.02) > 1e-12 || math.Abs(se-0.01/math.Sqrt(3)) > 1e-12 {
		t.Errorf("mean %g, standard error %g", mean, se)
	}
	if mean, se = Difference([]Pair{{1, 1}}); !math.IsNaN(mean) || !math.IsNaN(se) {
		t.Errorf("one pair gave %g, %g", mean, se)
	}
}

func FuzzProgramID(f *testing.F) {
	f.Add("pos:\t0\nflags:\t02000002\nlink_type:\ttracing\nlink_id:\t7\nprog_tag:\tdeadbeef\nprog_id:\t12\n")
	f.Add("prog_id:\t99999999999\n")
	f.Add("prog_id:")
	f.Fuzz(func(t *testing.T, fdinfo string) {
		if id, ok := programID(fdinfo); ok == (id == 0) {
			t.Errorf("id %d, found %v", id, ok)
		}
	})
}

func TestProgramID(t *testing.T) {
	if id, ok := programID("pos:\t0\nprog_id:\t12\n"); !ok || id != 12 {
		t.Errorf("got %d, %v", id, ok)
	}
}
