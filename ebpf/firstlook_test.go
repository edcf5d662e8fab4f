package ebpf

import "testing"

func TestFirstLook(t *testing.T) {
	f := newFirstLook()
	find := func(socket, send uint64, want int64) {
		t.Helper()
		if got, _ := f.find(socket, send); got != want {
			t.Errorf("exchange %d/%d: %d, want %d", socket, send, got, want)
		}
	}
	f.begin()
	f.keep(1, 10, 1000)
	find(1, 10, 1000)
	find(1, 11, 0) // the socket's next exchange is another
	find(2, 10, 0)

	f.begin() // 1/10 has ended, its event is not drained yet
	f.keep(1, 20, 2000)
	find(1, 10, 1000)
	find(1, 20, 2000)

	f.begin()
	find(1, 10, 0)
	if n := len(f.last) + len(f.before); n != 1 {
		t.Errorf("holds %d exchanges, want those of two looks: 1", n)
	}
}
