// Package demo is the program behind `make demo`: a real inference cluster, a
// fault that no log names, and the alert that does.
//
// In: Options. Out: a report on a writer, and an error when the exporter did
// not do its main job: every slow request found and blamed on the right leg,
// nothing found where nothing was done.
package demo
