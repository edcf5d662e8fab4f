// Package specs holds the field's campaigns as specifications for the lab
// (make lab) and, netem.yml, for a cluster of your own.
//
// In: nothing. Out: Files, for the test that each can be played.
package specs

import "embed"

// Files are the specifications.
//
//go:embed *.yml
var Files embed.FS
