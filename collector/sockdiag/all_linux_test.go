package sockdiag

import (
	"os"
	"testing"

	"grayfail/collector/netns"
	"grayfail/event"
)

// TestLiveSurvey: connections of any port are found, with who opened them and
// whose they are.
func TestLiveSurvey(t *testing.T) {
	coordinator, worker := lab(t)
	l := listen(t, worker, "tcp4", "10.79.2.2:0")
	opened := dial(t, coordinator, "tcp4", l.Addr().String())
	accepted := accept(t, l)
	once := listen(t, worker, "tcp6", "[fd79::2]:0")
	opened6 := dial(t, coordinator, "tcp6", once.Addr().String())
	accepted6 := accept(t, once)
	once.Close()
	turn(t, opened, accepted, 5000, 6000)
	turn(t, opened6, accepted6, 5000, 6000)

	s := NewSurvey(Options{})
	t.Cleanup(func() { s.Close() })
	list, problems := s.Collect(1, []netns.Namespace{coordinator, worker}, true)
	if len(problems) > 0 || len(list) != 4 {
		t.Fatalf("%v, %+v", problems, list)
	}
	for _, c := range []struct {
		name string
		role event.Role
		acks uint64
	}{
		{opened.LocalAddr().String(), event.RoleClient, 5001}, {accepted.LocalAddr().String(), event.RoleServer, 6000},
		{opened6.LocalAddr().String(), event.RoleClient, 5001}, {accepted6.LocalAddr().String(), event.RoleServer, 6000},
	} {
		found := false
		for _, got := range list {
			if got.Flow.Local.String() == c.name {
				found = true
				if got.Flow.Role != c.role || got.BytesAcked != c.acks || got.Flow.PID != os.Getpid() || got.Flow.NetnsInode == 0 {
					t.Errorf("%s: %+v", c.name, got)
				}
			}
		}
		if !found {
			t.Errorf("%s is not listed", c.name)
		}
	}
	if list, _ := s.Collect(2, []netns.Namespace{coordinator}, false); len(list) != 2 || list[0].Flow.PID != 0 {
		t.Errorf("one namespace, no owners: %+v", list)
	}
	small := NewSurvey(Options{MaxSockets: 3})
	t.Cleanup(func() { small.Close() })
	if list, problems := small.Collect(1, []netns.Namespace{coordinator, worker}, false); len(list) != 3 || len(problems) != 1 || problems[0].Reason != ReasonOverflow {
		t.Errorf("%d connections, %v", len(list), problems)
	}
}
