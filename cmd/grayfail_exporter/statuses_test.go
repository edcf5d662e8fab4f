package main

import (
	"errors"
	"io/fs"
	"testing"

	"grayfail/event"
)

func only(t *testing.T, s *statuses) event.Status {
	t.Helper()
	list := s.list()
	if len(list) != 1 {
		t.Fatalf("statuses %+v", list)
	}
	return list[0]
}

func TestStatusesTellFailureFromAbsence(t *testing.T) {
	s := newStatuses("tcp_events")
	if s.ready() || only(t, s).Availability != event.NotTried {
		t.Error("ready before the first try")
	}
	for _, tt := range []struct {
		name     string
		problems []event.Problem
		err      error
		want     event.Availability
		reason   string
		errors   uint64
	}{
		{"works", nil, nil, event.Up, "", 0},
		{"something missing", []event.Problem{{Reason: "no_btf"}}, nil, event.Degraded, "no_btf", 0},
		{"refused", nil, &fs.PathError{Err: fs.ErrPermission}, event.Failed, "no_permission", 1},
		{"not in this kernel", nil, errors.ErrUnsupported, event.Unsupported, "not_supported", 1},
		{"broken", nil, errors.New("odd bytes"), event.Failed, "failed", 2},
	} {
		s.tried("tcp_events", 0, 0, tt.problems, asProblem(tt.err))
		got := only(t, s)
		if got.Availability != tt.want || got.Errors != tt.errors || !s.ready() {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if tt.reason != "" && (len(got.Problems) != 1 || got.Problems[0].Reason != tt.reason) {
			t.Errorf("%s: problems %+v", tt.name, got.Problems)
		}
	}
}

func TestStatusesJoinProblemsOfOneReason(t *testing.T) {
	s := newStatuses("requests")
	s.tried("requests", 0, 0, []event.Problem{{Reason: "down", Detail: "a"}, {Reason: "other", Detail: "x"}, {Reason: "down", Detail: "b"}, {Reason: "down", Detail: "b"}}, nil)
	got := only(t, s).Problems
	if len(got) != 2 || got[0] != (event.Problem{Reason: "down", Detail: "a; b"}) {
		t.Errorf("problems %+v", got)
	}
}

// TestNoSendHookIsFailure: retransmits may still be counted, but no leg can be
// named, so collector_up must not be 1.
func TestNoSendHookIsFailure(t *testing.T) {
	s := newStatuses("tcp_events")
	s.loaded([]event.Problem{{Reason: "refused_by_kernel", Detail: "send hook"}}, true, false)
	s.eventsTried(0, 0, nil)
	if got := only(t, s); got.Availability != event.Failed || got.Errors != 0 {
		t.Errorf("%+v", got)
	}
}
