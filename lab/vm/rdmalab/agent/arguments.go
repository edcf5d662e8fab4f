package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"grayfail/lab/vm/verbs"
)

// arguments are the words of a command, taken one by one. The first error
// stays.
type arguments struct {
	words []string
	err   error
}

func (a *arguments) text() string {
	if len(a.words) == 0 {
		if a.err == nil {
			a.err = errors.New("too few words")
		}
		return ""
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w
}

func (a *arguments) number() int {
	w := a.text()
	n, err := strconv.Atoi(w)
	if err != nil && a.err == nil {
		a.err = err
	}
	return n
}

func (a *arguments) addr() netip.Addr {
	w := a.text()
	addr, err := netip.ParseAddr(w)
	if err != nil && a.err == nil {
		a.err = err
	}
	return addr
}

// call does something with a queue pair that there is.
func (a *arguments) call(q *verbs.QueuePair, f func(*verbs.QueuePair) error) error {
	if q == nil {
		return fmt.Errorf("no such queue pair")
	}
	err := f(q)
	if a.err != nil {
		return a.err
	}
	return err
}
