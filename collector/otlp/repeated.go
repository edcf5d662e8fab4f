package otlp

// A memory knows the last spans it was shown: a sender that did not hear our
// answer sends them again. It holds at most max.
type memory struct {
	max   int
	known map[spanKey]struct{}
	order []spanKey // a ring, once full
	next  int
}

// A spanKey is a trace's and a span's id.
type spanKey [24]byte

func newMemory(max int) *memory { return &memory{max: max, known: map[spanKey]struct{}{}} }

// repeated says that a span was shown before, and remembers it. One without
// an id is none of ours to tell.
func (m *memory) repeated(traceID, spanID []byte) bool {
	var key spanKey
	if len(spanID) == 0 {
		return false
	}
	copy(key[:16], traceID)
	copy(key[16:], spanID)
	if _, ok := m.known[key]; ok {
		return true
	}
	if len(m.order) < m.max {
		m.order = append(m.order, key)
	} else {
		delete(m.known, m.order[m.next])
		m.order[m.next] = key
		m.next = (m.next + 1) % m.max
	}
	m.known[key] = struct{}{}
	return false
}
