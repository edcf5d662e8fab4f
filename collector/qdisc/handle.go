package qdisc

import "strconv"

// Special parents (include/uapi/linux/pkt_sched.h).
const (
	parentUnspec  = 0
	parentRoot    = 0xFFFFFFFF // TC_H_ROOT
	parentIngress = 0xFFFFFFF1 // TC_H_INGRESS = TC_H_CLSACT
)

// Handle writes a qdisc handle as tc(8) does: "8001:". Default qdiscs have
// handle 0, "0:".
func Handle(h uint32) string {
	return strconv.FormatUint(uint64(h>>16), 16) + ":"
}

// Parent writes where a qdisc hangs: "root", "8001:1" (a class), ":1" (a queue
// of a multiqueue root without handle) as tc(8) does, and "ingress" or
// "clsact" by kind where tc shows ffff:fff1 for both.
func Parent(p uint32, kind string) string {
	switch p {
	case parentRoot:
		return "root"
	case parentIngress:
		if kind == "clsact" {
			return "clsact"
		}
		return "ingress"
	case parentUnspec:
		return "none"
	}
	major, minor := uint64(p>>16), uint64(p&0xFFFF)
	switch {
	case major == 0:
		return ":" + strconv.FormatUint(minor, 16)
	case minor == 0:
		return strconv.FormatUint(major, 16) + ":"
	}
	return strconv.FormatUint(major, 16) + ":" + strconv.FormatUint(minor, 16)
}
