// Package report says what the runs of a campaign come to.
//
// In: the method that was fixed before the first run (ReadMethod, from plan.json)
// and runs.jsonl (Read). Out: values: the table in the form in which the field publishes it,
// rates normalized by each block's control condition, rank correlations with
// their criterion, which requests held a retransmission timeout, which legs were
// named (Analyse); the comparison of two campaigns (Compare); and both as
// Markdown.
//
// The package is pure: bytes in, values out, no clock and no files. The same
// runs give the same bytes.
package report
