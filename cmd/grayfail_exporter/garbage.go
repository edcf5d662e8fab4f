package main

import (
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage may be in memory beside what is in use
// before it is collected. Go's 100 held 98 MB resident with 256 busy legs,
// this 78 MB, for a twentieth more CPU time (docs/cost.md has the load).
const garbagePercent = 50

// boundGarbage leaves it to GOGC where the operator has set that.
func boundGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}
