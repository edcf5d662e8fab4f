// Package spec reads what a campaign fixes before its first run: the question,
// the rule, the criteria, the conditions with how each is made and unmade, the
// request, and the order.
//
// In: the bytes of a YAML file. Out: a Spec with defaults filled in, or every
// problem with its line and field; the hash of the bytes, which is in each
// record; the order of all runs, by the seed.
package spec
