package llamalog

import (
	"bytes"
	"math"

	"grayfail/event"
)

// A cliRun is what is known of a llama-cli that writes to a stream.
type cliRun struct {
	// Prompt and Generated are of a block of times that has begun.
	Prompt    *count `json:"prompt,omitempty"`
	Generated *count `json:"generated,omitempty"`
	// Counted: turns of this run were told one by one, so that the sums at its
	// end tell nothing new.
	Counted bool `json:"counted,omitempty"`
	// FailedNS is when it was last seen to fail.
	FailedNS int64 `json:"failed_ns,omitempty"`
	// Made counts the requests found so far.
	Made int `json:"made,omitempty"`
	// asked: a turn's prompt was shown; its answer came from firstNS to lastNS.
	asked           bool
	firstNS, lastNS int64
}

// perfNames are the functions that print the times of a whole run: 2023, since
// late 2024, llama-completion in 2026; the second is llama-server's of 2023.
var perfNames = []string{"llama_print_timings: ", "print_timings: ", "llama_perf_context_print: ", "common_perf_print: "}

// cli understands a line of llama-cli.
func (p *Parser) cli(s *stream, line said) bool {
	for _, name := range perfNames {
		if rest, ok := bytes.CutPrefix(line.text, []byte(name)); ok {
			p.perf(s, parseTiming(rest), line.atNS)
			return true
		}
	}
	if prompt, generation, ok := turnRates(line.text); ok {
		p.turn(s, prompt, generation, line.atNS)
		return true
	}
	s.Run.watch(line)
	return false
}

// perf takes one line of
//
//	llama_perf_context_print: prompt eval time =      26.82 ms /    21 tokens (...)
//	llama_perf_context_print:        eval time =     272.99 ms /    23 runs   (...)
//	llama_perf_context_print:       total time =     424.18 ms /    44 tokens
//
// A run is a step of decoding: the first token came out of the prompt's
// evaluation and is not among them.
func (p *Parser) perf(s *stream, t timing, atNS int64) {
	if t.broken {
		p.ignore(IgnoredBroken)
	}
	run := &s.Run
	switch c := (count{t.n, t.ms}); t.kind {
	case timingPrompt:
		run.Prompt = &c
	case timingGenerated:
		run.Generated = &c
	case timingTotal:
		prompt, generated := run.Prompt, run.Generated
		summary := run.Counted
		*run = cliRun{Made: run.Made}
		switch {
		case prompt == nil || generated == nil:
			p.ignore(IgnoredOrphan)
		case summary:
			p.ignore(IgnoredSummary)
		default:
			r := p.run(s, event.OutcomeOK, atNS)
			measure(&r, *prompt, *generated)
			p.emit(r)
		}
	}
}

// turnRates reads "[ Prompt: 402.6 t/s | Generation: 163.3 t/s ]".
func turnRates(text []byte) (prompt, generation float64, ok bool) {
	rest, ok := bytes.CutPrefix(text, []byte("[ Prompt:"))
	if !ok {
		return 0, 0, false
	}
	prompt, rest, ok = number(rest)
	rest, unit := bytes.CutPrefix(rest, []byte(" t/s | Generation:"))
	if !ok || !unit {
		return 0, 0, false
	}
	generation, rest, ok = number(rest)
	if !ok || !bytes.Equal(bytes.TrimRight(rest, " "), []byte(" t/s ]")) {
		return 0, 0, false
	}
	return prompt, generation, prompt >= 0 && generation >= 0
}

// turn takes the rates of one turn of a conversation.
func (p *Parser) turn(s *stream, prompt, generation float64, atNS int64) {
	run := &s.Run
	if s.Server {
		p.ignore(IgnoredSummary) // a verbose llama-cli: its slots told it already
		return
	}
	if prompt > maxRate || generation > maxRate || prompt == 0 && generation == 0 {
		p.ignore(IgnoredBroken)
		return
	}
	r := p.run(s, event.OutcomeOK, atNS)
	r.PrefillRate, r.DecodeRate = prompt, generation
	// How many tokens it were is not said. Where the answer was seen to come,
	// its time and rate tell: the first came with no wait of its own.
	const few = 4 // an answer read at once from a file has no time
	if steps := generation * float64(run.lastNS-run.firstNS) / 1e9; run.firstNS != 0 && steps >= few && steps < maxTokens {
		r.GeneratedTokens = int(math.Round(steps)) + 1
		r.StartNS, r.FirstTokenNS, r.EndNS = run.firstNS, run.firstNS, run.lastNS
		r.LowConfidence = true
	}
	*run = cliRun{Counted: true, Made: run.Made}
	p.emit(r)
}

// watch notes when an answer comes: behind a line "> PROMPT" that shows what
// was asked.
func (run *cliRun) watch(line said) {
	switch {
	case !run.asked:
		run.asked = len(line.text) > 2 && bytes.HasPrefix(line.text, []byte("> "))
	case len(bytes.TrimSpace(line.text)) == 0:
	case run.firstNS == 0:
		run.firstNS, run.lastNS = line.firstNS, line.lastNS
	default:
		run.lastNS = line.lastNS
	}
}

// runFailed: the run ended in an error. One run says so on several lines.
func (p *Parser) runFailed(s *stream, atNS int64) {
	run := &s.Run
	if run.FailedNS != 0 && atNS-run.FailedNS < hold {
		run.FailedNS = atNS
		p.ignore(IgnoredRepeated)
		return
	}
	r := p.run(s, event.OutcomeError, atNS)
	if run.firstNS != 0 && run.firstNS < atNS {
		r.StartNS, r.FirstTokenNS = run.firstNS, run.firstNS
	}
	*run = cliRun{FailedNS: max(1, atNS), Made: run.Made}
	p.emit(r)
}

// closeRun: the log ended. A block whose last line is missing is no request.
func (p *Parser) closeRun(s *stream) {
	if s.Run.Prompt != nil || s.Run.Generated != nil {
		p.ignore(IgnoredOrphan)
	}
	s.Run = cliRun{Made: s.Run.Made}
}

// run makes the request of a run that ended at atNS.
func (p *Parser) run(s *stream, outcome event.Outcome, atNS int64) event.Request {
	s.Run.Made++
	return event.Request{
		ID:     s.id("run", int64(s.Run.Made), atNS),
		Source: p.config.Name, Model: p.model(s), EndNS: max(1, atNS), Outcome: outcome,
	}
}
