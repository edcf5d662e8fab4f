// Package runner plays a campaign: it makes each condition, sends the requests
// under it, proves that the condition acted, and leaves the network as it was.
//
// In: a spec.Spec and a folder. Out: spec.yml, plan.json, one line a request in
// runs.jsonl, report.md. A folder that holds a part of the same campaign is
// gone on with; after a kill the condition that was in force is cleared first.
package runner
