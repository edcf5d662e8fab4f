package ebpf

// firstLook remembers the wall-clock time an open exchange was first reported
// with, so that every later look and its end carry the very same SendNS: that
// is how a reader knows which record replaces which. Without it the mapping's
// jitter, or a clock step while the exchange runs, would make two of one.
//
// It holds the open exchanges of the last two looks, so it is bounded by the
// socket table. The one before last is needed for an exchange that ended
// before the last look and is drained after it.
type firstLook struct {
	last, before map[firstLookKey]int64
}

type firstLookKey struct{ socket, send uint64 }

func newFirstLook() *firstLook {
	return &firstLook{last: map[firstLookKey]int64{}, before: map[firstLookKey]int64{}}
}

// begin starts a new look.
func (f *firstLook) begin() {
	f.last, f.before = f.before, f.last
	clear(f.last)
}

// keep notes an open exchange of the present look.
func (f *firstLook) keep(socket, send uint64, wallNS int64) {
	f.last[firstLookKey{socket, send}] = wallNS
}

// find gives the time an exchange was first reported with.
func (f *firstLook) find(socket, send uint64) (int64, bool) {
	key := firstLookKey{socket, send}
	if ns, ok := f.last[key]; ok {
		return ns, true
	}
	ns, ok := f.before[key]
	return ns, ok
}
