package spec

import (
	"slices"
	"strings"
	"testing"

	"grayfail/lab/campaign/report"
)

const good = `version: 1
name: loss
question: Does loss slow requests down?
order_seed: 7
warmup: 15
blocks: 3
repeats: 2
exporter: http://127.0.0.1:10550
request: {url: "http://127.0.0.1:8081/v1/completions", body: '{"prompt":"x","max_tokens":32}'}
rule: {control: none}
criteria:
- {condition: loss-5, evidence: drop_fraction, op: "<=", rho: -0.4}
conditions:
- {name: none}
- {name: loss-5, netns: gf-lab-b, device: eth0, netem: [loss, 5%]}
- {name: slow-host, pause: {pid: 4711, percent: 80, period: 100ms}}
- {name: own, apply: [sh, -c, "true"], clear: ["true"], counter: [echo, "1"]}
`

func TestParse(t *testing.T) {
	s, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if s.Planned() != 3*4*2 || s.Concurrency != 1 || s.Rule.Measure != report.Decode || s.Rule.SlowBelow != 0.5 || !strings.HasPrefix(s.Hash, "sha256:") {
		t.Errorf("%+v", s)
	}
	m := s.Method()
	if !slices.Equal(m.Conditions, []string{"none", "loss-5", "slow-host", "own"}) || m.Control != "none" || m.Criteria[0].Rho != -0.4 || m.SpecHash != s.Hash {
		t.Errorf("%+v", m)
	}
	var kinds []string
	for i := range s.Conditions {
		kinds = append(kinds, s.Conditions[i].Kind())
	}
	if !slices.Equal(kinds, []string{"", "netem", "pause", "commands"}) {
		t.Errorf("kinds %q", kinds)
	}
}

// TestOrder: fixed by the specification, every condition once in each block,
// and runs numbered in the order of play.
func TestOrder(t *testing.T) {
	s, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	order := s.Order()
	if !slices.Equal(order, s.Order()) {
		t.Error("another order at the second look")
	}
	seen := make(map[int]map[string]bool)
	shuffled := false
	for i, slot := range order {
		if seen[slot.Block] == nil {
			seen[slot.Block] = make(map[string]bool)
		}
		seen[slot.Block][slot.Condition] = true
		if slot.FirstRun != 2*i || slot.Position != i%4 || slot.Block != i/4 {
			t.Errorf("slot %d: %+v", i, slot)
		}
		shuffled = shuffled || slot.Condition != s.Conditions[i%4].Name
	}
	for block := range 3 {
		if len(seen[block]) != 4 {
			t.Errorf("block %d has %v", block, seen[block])
		}
	}
	if !shuffled {
		t.Error("nothing is shuffled")
	}
	plan, err := s.PlanJSON()
	if err != nil {
		t.Fatal(err)
	}
	if m, err := report.ReadMethod(plan); err != nil || m.Planned != 24 {
		t.Errorf("the report reads %+v, %v", m, err)
	}
	for _, want := range []string{"campaign loss, sha256:", "netem loss 5% on what eth0 of network namespace gf-lab-b sends", "rho(drop_fraction, normalized rate) <= -0.40 inside loss-5", "24 runs", "block 3: "} {
		if !strings.Contains(s.Text(), want) {
			t.Errorf("no %q in\n%s", want, s.Text())
		}
	}
}

// TestErrors: each names line and field.
func TestErrors(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"version: 1", "version: 2", "line 1: version: 2: this program reads version 1"},
		{"name: loss\n", "name: a/b\n", `line 2: name: "a/b"`},
		{"warmup: 15", "warm_up: 15", "line 5: warm_up"},
		{"blocks: 3", "blocks: 0", "line 6: blocks: 0: at least 1"},
		{"blocks: 3", "blocks: 99999999", "more than 100000 runs"},
		{"repeats: 2", "repeats: two", "line 7: repeats"},
		{"repeats: 2", "repeats: 2\nconcurrency: 300", "line 8: concurrency: 300 is outside 1 to 256"},
		{"repeats: 2", "repeats: 2\ntimeout: soon", "line 8: timeout"},
		{"http://127.0.0.1:10550", "localhost:1", "line 8: exporter"},
		{`url: "http://127.0.0.1:8081/v1/completions", body`, "body", "line 9: request: one of url and command"},
		{"control: none", "control: nobody", `line 10: rule: control: "nobody" is not a condition`},
		{"control: none", "control: none, measure: joy", "measure"},
		{"op: \"<=\"", "op: \"<\"", "op: \"<\", want <= or >="},
		{"name: loss-5", "name: none", `line 15: conditions[1].name: "none" is listed twice`},
		{"device: eth0, ", "", "line 15: conditions[1].device: is needed with netem"},
		{"device: eth0", "device: a-name-that-is-too-long", "is no interface's name"},
		{"netns: gf-lab-b", "netns: ../../etc", "is not a name under /run/netns"},
		{"netem: [loss, 5%]", "netem: [loss, 5%], drop_percent: 5", "line 15: conditions[1]: only one of"},
		{"netem: [loss, 5%]", "drop_percent: 101", "101 is outside 0.01 to 100"},
		{"pid: 4711", "pid: 1", "line 16: conditions[2].pause.pid: 1 is no process"},
		{"percent: 80", "percent: 100", "line 16: conditions[2].pause.percent"},
		{", clear: [\"true\"]", "", "line 17: conditions[3].clear: is needed with apply"},
		{", counter: [echo, \"1\"]", "", "line 17: conditions[3].counter"},
		{"apply: [sh, -c, \"true\"], ", "", "line 17: conditions[3].apply: is needed"},
	} {
		text := strings.Replace(good, tt.old, tt.new, 1)
		if text == good {
			t.Fatalf("%q is not there", tt.old)
		}
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.new, err, tt.want)
		}
	}
	if _, err := Parse(nil); err == nil {
		t.Error("an empty file is a campaign")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("version: 1\nconditions: [{name: a}]"))
	f.Add([]byte("conditions: [{pause: {}}]"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		if s.Planned() < 1 || s.Planned() > maxRuns || len(s.Order())*s.Repeats*s.Concurrency != s.Planned() {
			t.Errorf("%d runs planned, %d slots", s.Planned(), len(s.Order()))
		}
		plan, err := s.PlanJSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := report.ReadMethod(plan); err != nil {
			t.Errorf("the report cannot read the plan: %v", err)
		}
	})
}
