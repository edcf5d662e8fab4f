package qdisc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"grayfail/event"
)

// sizeofTcmsg is struct tcmsg (include/uapi/linux/rtnetlink.h).
const sizeofTcmsg = 20

// Entry is one qdisc of a dump, with the index of its interface.
type Entry struct {
	Ifindex int
	Qdisc   event.Qdisc // without TimeNS, Netns and Device
}

// MessageError says which message of a dump could not be read.
type MessageError struct {
	Index int // position in the dump, from 0
	Err   error
}

func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %v", e.Index, e.Err) }
func (e *MessageError) Unwrap() error { return e.Err }

// maxErrors bounds the errors joined for one dump.
const maxErrors = 8

// Parse reads the messages of an RTM_GETQDISC dump. A message that cannot be
// read is left out and named in the error (a joined *MessageError); all others
// are returned. A qdisc listed twice, as a dump that raced a change may have
// it, is returned once, with the later numbers.
func Parse(msgs []netlink.Message) ([]Entry, error) {
	entries := make([]Entry, 0, len(msgs))
	seen := make(map[identity]int, len(msgs))
	kinds := make(map[string]string, 8)
	var errs []error
	bad := 0
	for i := range msgs {
		if msgs[i].Header.Type != unix.RTM_NEWQDISC {
			continue
		}
		var e Entry
		id, err := e.parse(msgs[i].Data, kinds)
		if err != nil {
			if bad++; bad <= maxErrors {
				errs = append(errs, &MessageError{i, err})
			}
			continue
		}
		if at, twice := seen[id]; twice {
			entries[at] = e
			continue
		}
		seen[id] = len(entries)
		entries = append(entries, e)
	}
	if bad > maxErrors {
		errs = append(errs, fmt.Errorf("%d more messages could not be read", bad-maxErrors))
	}
	return entries, errors.Join(errs...)
}

// identity is what tells two qdiscs of a namespace apart.
type identity struct {
	ifindex        int
	handle, parent uint32
	kind           string
}

func (e *Entry) parse(b []byte, kinds map[string]string) (identity, error) {
	if len(b) < sizeofTcmsg {
		return identity{}, fmt.Errorf("struct tcmsg: %w", errTruncated)
	}
	id := identity{
		ifindex: int(int32(binary.NativeEndian.Uint32(b[4:]))),
		handle:  binary.NativeEndian.Uint32(b[8:]),
		parent:  binary.NativeEndian.Uint32(b[12:]),
	}
	ad, err := netlink.NewAttributeDecoder(b[sizeofTcmsg:])
	if err != nil {
		return identity{}, err
	}
	var stats counters
	for ad.Next() {
		switch ad.Type() {
		case unix.TCA_KIND:
			ad.Do(func(b []byte) error { id.kind = intern(kinds, b); return nil })
		case unix.TCA_STATS2:
			ad.Nested(stats.nest)
		case unix.TCA_STATS:
			ad.Do(stats.legacy)
		}
	}
	if err := ad.Err(); err != nil {
		return identity{}, err
	}
	if id.kind == "" {
		return identity{}, errors.New("TCA_KIND is missing")
	}
	e.Ifindex = id.ifindex
	e.Qdisc = stats.qdisc()
	e.Qdisc.Kind = id.kind
	e.Qdisc.Handle = Handle(id.handle)
	e.Qdisc.Parent = Parent(id.parent, id.kind)
	return id, nil
}

// intern makes one string per kind, not one per qdisc.
func intern(kinds map[string]string, b []byte) string {
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	kind, known := kinds[string(b)]
	if !known {
		kind = strings.ToValidUTF8(string(b), "_")
		kinds[string(b)] = kind
	}
	return kind
}
