package engine

// vLLM adds an optional object to OpenAI's shape. Its tokens_per_second
// includes the prefill and is left alone; decode is 1000 / mean_itl_ms.
var vLLM = []field{
	{"metrics.mean_itl_ms", func(d *document, v value) {
		if ms, ok := v.milliseconds(); ok && ms > 0 {
			d.timings.seen, d.timings.rate = true, 1000/ms
		}
	}, false},
}
