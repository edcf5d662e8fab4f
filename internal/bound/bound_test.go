package bound

import "testing"

func TestAdmit(t *testing.T) {
	n := New(2)
	for _, step := range []struct{ in, want string }{
		{"a", "a"}, {"b", "b"}, {"c", Other}, {"a", "a"}, {"d", Other},
	} {
		if got := n.Admit(step.in); got != step.want {
			t.Errorf("Admit(%q) = %q, want %q", step.in, got, step.want)
		}
	}
	if got := n.Overflow(); got != 2 {
		t.Errorf("Overflow() = %d, want 2", got)
	}
}
