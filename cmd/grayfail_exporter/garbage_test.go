package main

import (
	"runtime/debug"
	"testing"
)

func TestGarbageIsBoundUnlessTheOperatorSaysOtherwise(t *testing.T) {
	before := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "77")
	boundGarbage()
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("GOGC=77: %d", got)
	}
	t.Setenv("GOGC", "")
	boundGarbage()
	if got := debug.SetGCPercent(77); got != garbagePercent {
		t.Errorf("without GOGC: %d", got)
	}
}
