package specs

import (
	"strings"
	"testing"

	"grayfail/lab"
	"grayfail/lab/campaign/spec"
)

// TestFiles: each can be played, and is named like its file.
func TestFiles(t *testing.T) {
	files, err := Files.ReadDir(".")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		text, err := Files.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		s, err := spec.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		if s.Name+".yml" != f.Name() || s.Question == "" || s.Rule.Control != "none" || s.Warmup < 10 {
			t.Errorf("%s: name %s, question %q, control %q, %d warm-up requests", f.Name(), s.Name, s.Question, s.Rule.Control, s.Warmup)
		}
		if s.Name != "netem" && !strings.Contains(string(text), "make lab") {
			t.Errorf("%s does not say what to start before it", f.Name())
		}
		for _, c := range s.Conditions {
			if c.Netns != "" && !strings.HasPrefix(c.Netns, "gf-lab-lab-") || c.Netns != "" && c.Device != "eth0" && c.Device != "to-"+lab.LegA && c.Device != "to-"+lab.LegB {
				t.Errorf("%s: %s is at %s of %s, which the lab has not", f.Name(), c.Name, c.Device, c.Netns)
			}
		}
	}
}
