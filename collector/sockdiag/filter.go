package sockdiag

import (
	"encoding/binary"
	"slices"
)

// Bytecode of INET_DIAG_REQ_BYTECODE (include/uapi/linux/inet_diag.h): struct
// inet_diag_bc_op {u8 code, yes; u16 no}, jumps forward by that many bytes;
// a comparison is followed by an op that carries the port in its no field.
// GE and LE exist in every kernel, S_EQ and D_EQ only in newer ones.
const (
	bcJmp = 1
	bcSGE = 2
	bcSLE = 3
	bcDGE = 4
	bcDLE = 5
)

const (
	sizeofOp      = 4
	sizeofCompare = 2 * sizeofOp
	// sizeofTest is >=, <= and the jump to the end, for one side's port.
	sizeofTest = 2*sizeofCompare + sizeofOp
)

// maxPorts keeps the bytecode within the 16 bits of a jump and an attribute.
const maxPorts = (1<<16 - 64) / (2 * sizeofTest)

// Filter makes the bytecode that accepts a socket with one of the ports on
// either side. The audit in net/ipv4/inet_diag.c walks the yes path; a jump
// to the end accepts and one beyond it rejects. ports holds 1 to maxPorts.
func Filter(ports []uint16) []byte {
	ports = slices.Clone(ports)
	slices.Sort(ports)
	ports = slices.Compact(ports)
	size := len(ports) * 2 * sizeofTest
	code := make([]byte, 0, size)
	op := func(kind, yes uint8, no uint16) {
		code = append(code, kind, yes)
		code = binary.NativeEndian.AppendUint16(code, no)
	}
	for i, port := range ports {
		for side, ops := range [2][2]uint8{{bcSGE, bcSLE}, {bcDGE, bcDLE}} {
			last := i == len(ports)-1 && side == 1
			next := uint16(sizeofTest) // a failed >= goes to the next test
			if last {
				next += sizeofOp // or beyond the end
			}
			op(ops[0], sizeofCompare, next)
			op(0, 0, port)
			op(ops[1], sizeofCompare, next-sizeofCompare)
			op(0, 0, port)
			op(bcJmp, sizeofOp, uint16(size-len(code)))
		}
	}
	return code
}
