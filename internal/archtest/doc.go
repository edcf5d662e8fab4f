// Package archtest holds the rules of the source tree as tests.
//
// In: the files of this checkout. Out: failed tests that name file, line and
// rule: who may import whom, what the pure detector must not touch, how long a
// file may get, what tests must not do, and what no tracked file may contain.
//
// Every rule is a function from a file to findings, and every rule has a
// sample that breaks it, so that a rule which finds nothing is known to look.
package archtest
