package nldev

import "strconv"

// Messages go to client RDMA_NL_NLDEV of family NETLINK_RDMA; a message's type
// is (client << 10) + operation, and attributes follow the netlink header at
// once. Linux, include/uapi/rdma/rdma_netlink.h.
const clientNLDEV = 5

// Op is an operation, enum rdma_nldev_command.
type Op uint16

// Operations of this package. The kernel answers one it does not know with
// EINVAL, like a device it does not know.
const (
	OpGet        Op = 1  // RDMA_NLDEV_CMD_GET
	OpPortGet    Op = 5  // RDMA_NLDEV_CMD_PORT_GET
	OpSysGet     Op = 6  // RDMA_NLDEV_CMD_SYS_GET
	OpResGet     Op = 9  // RDMA_NLDEV_CMD_RES_GET
	OpResQPGet   Op = 10 // RDMA_NLDEV_CMD_RES_QP_GET
	OpResMRGet   Op = 13 // RDMA_NLDEV_CMD_RES_MR_GET
	OpStatGet    Op = 17 // RDMA_NLDEV_CMD_STAT_GET
	opConnecting Op = 0  // opening the socket, for errors only
)

// String names an operation as the kernel's header does, without its prefix.
func (o Op) String() string {
	switch o {
	case OpGet:
		return "GET"
	case OpPortGet:
		return "PORT_GET"
	case OpSysGet:
		return "SYS_GET"
	case OpResGet:
		return "RES_GET"
	case OpResQPGet:
		return "RES_QP_GET"
	case OpResMRGet:
		return "RES_MR_GET"
	case OpStatGet:
		return "STAT_GET"
	case opConnecting:
		return "socket"
	}
	return "operation " + strconv.Itoa(int(o))
}

// Attributes, enum rdma_nldev_attr: the same numbers in every operation.
const (
	attrDevIndex       = 1  // u32
	attrDevName        = 2  // string
	attrPortIndex      = 3  // u32; the number of ports in the answer to GET
	attrFWVersion      = 5  // string
	attrNodeGUID       = 6  // u64, host order
	attrSysImageGUID   = 7  // u64, host order
	attrSubnetPrefix   = 8  // u64, host order; link layer InfiniBand only
	attrLID            = 9  // u32; link layer InfiniBand only
	attrPortState      = 12 // u8, enum ib_port_state
	attrPortPhysState  = 13 // u8, enum ib_port_phys_state
	attrDevNodeType    = 14 // u8, enum rdma_node_type
	attrResSummary     = 15 // nest
	attrResSummaryItem = 16 // nest
	attrResSummaryName = 17 // string
	attrResSummaryCurr = 18 // u64
	attrResQP          = 19 // nest
	attrResQPEntry     = 20 // nest
	attrResLQPN        = 21 // u32
	attrResRQPN        = 22 // u32; RC and UC only
	attrResRQPSN       = 23 // u32; RC and UC only
	attrResSQPSN       = 24 // u32
	attrResType        = 26 // u8, enum ib_qp_type
	attrResState       = 27 // u8, enum ib_qp_state
	attrResPID         = 28 // u32; absent for the kernel's own
	attrResKernName    = 29 // string; the kernel's own only
	attrResMR          = 40 // nest
	attrResMREntry     = 41 // nest
	attrResMRLen       = 45 // u64
	attrNetdevIndex    = 50 // u32
	attrNetdevName     = 51 // string
	attrResPDN         = 60 // u32
	attrResMRN         = 62 // u32
	attrNetnsMode      = 66 // u8
	attrDevProtocol    = 67 // string
	attrHWCounters     = 80 // nest
	attrHWCounterEntry = 81 // nest
	attrHWCounterName  = 82 // string
	attrHWCounterValue = 83 // u64
)
