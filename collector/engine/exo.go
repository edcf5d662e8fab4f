package engine

// exo is what exo adds to OpenAI's shape under a prefix: rates of its own. Its
// prompt_tps is left alone: what of the prompt was cached is not told.
func exo(prefix string) []field {
	return []field{
		{prefix + "generation_tps", func(d *document, v value) {
			if v.kind == kindNumber && v.number > 0 {
				d.timings.seen, d.timings.rate = true, v.number
			}
		}, false},
	}
}

var exoTree = plant(exo(""))

// exoMark begins the comment that carries the same object in a stream.
const exoMark = " generation_stats "

// exoComments reads that comment into t.
func exoComments(t *timings) func([]byte) {
	var scan *scanner // most streams have no such comment
	var doc document
	matched := 0
	return func(p []byte) {
		if p == nil {
			matched = 0
			if scan != nil {
				scan.reset()
				doc.next()
			}
			return
		}
		for len(p) > 0 && matched >= 0 && matched < len(exoMark) {
			if p[0] != exoMark[matched] {
				matched = -1
				return
			}
			matched++
			p = p[1:]
		}
		if matched < len(exoMark) {
			return
		}
		if scan == nil {
			scan = newScanner(exoTree,
				func(n *node, v value) { n.mean(&doc, v) },
				func() {
					t.rate = doc.timings.rate
					t.seen = t.seen || doc.timings.seen
				})
		}
		scan.feed(p)
	}
}
