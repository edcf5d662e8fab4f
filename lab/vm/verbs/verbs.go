// Package verbs makes queue pairs through the kernel's raw uverbs interface,
// without a user-space driver.
//
// In: the name of an RDMA device, ports, states. Out: queue pairs, protection
// domains and memory regions that the kernel lists under the process that made
// them, and frees with it. Nothing can be sent on them: only the control path
// works, which is what a reader of queue-pair states needs to be tested.
//
// The interface is write(2) on /dev/infiniband/uverbsN with the structures of
// include/uapi/rdma/ib_user_verbs.h.
package verbs

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of enum ib_uverbs_write_cmds.
const (
	cmdGetContext = 0
	cmdAllocPD    = 3
	cmdRegMR      = 9
	cmdCreateCQ   = 18
	cmdCreateQP   = 24
	cmdModifyQP   = 26
	cmdDestroyQP  = 27
)

// Device is an open RDMA device with a protection domain and a completion
// queue, which all its queue pairs share.
type Device struct {
	file   *os.File
	pd, cq uint32
}

// Open opens an RDMA device by its name: "rxe0".
func Open(name string) (*Device, error) {
	nodes, err := filepath.Glob("/sys/class/infiniband_verbs/uverbs*/ibdev")
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		b, err := os.ReadFile(node)
		if err != nil || strings.TrimSpace(string(b)) != name {
			continue
		}
		return open(filepath.Join("/dev/infiniband", filepath.Base(filepath.Dir(node))))
	}
	return nil, fmt.Errorf("RDMA device %s has no node in /dev/infiniband (module ib_uverbs)", name)
}

func open(path string) (*Device, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	d := &Device{file: os.NewFile(uintptr(fd), path)}
	if _, err = d.call("get_context", cmdGetContext, nil, 2); err == nil {
		d.pd, err = d.first("alloc_pd", cmdAllocPD, nil, 1)
	}
	if err == nil {
		var b request
		b.u64(0)                 // user_handle
		b.u32(16, 0, 1<<32-1, 0) // cqe, comp_vector, comp_channel -1, reserved
		d.cq, err = d.first("create_cq", cmdCreateCQ, b, 2)
	}
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// Close frees everything that was made on the device.
func (d *Device) Close() error { return d.file.Close() }

// RegisterMemory pins memory and registers it. The kernel counts it against
// RLIMIT_MEMLOCK.
func (d *Device) RegisterMemory(b []byte) error {
	const localWrite = 1 // IB_ACCESS_LOCAL_WRITE
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	var r request
	r.u64(start, uint64(len(b)), start) // start, length, hca_va
	r.u32(d.pd, localWrite)
	_, err := d.call("reg_mr", cmdRegMR, r, 3)
	return err
}

// request is the body of a command behind its response pointer.
type request []byte

func (r *request) u8(v ...uint8) { *r = append(*r, v...) }
func (r *request) u16(v ...uint16) {
	for _, v := range v {
		*r = binary.NativeEndian.AppendUint16(*r, v)
	}
}
func (r *request) u32(v ...uint32) {
	for _, v := range v {
		*r = binary.NativeEndian.AppendUint32(*r, v)
	}
}
func (r *request) u64(v ...uint64) {
	for _, v := range v {
		*r = binary.NativeEndian.AppendUint64(*r, v)
	}
}

// driverRoom is offered for what a driver adds to its answers: rxe wants to
// tell where its queues can be mapped (include/uapi/rdma/rdma_user_rxe.h).
const driverRoom = 64

// call executes a command whose body begins with the address of the response,
// and returns the response of so many words.
func (d *Device) call(name string, cmd uint32, body []byte, words int) ([]byte, error) {
	response := make([]byte, 4*words+driverRoom)
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(response))
	defer pin.Unpin()
	var b request
	b.u64(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(response)))))
	if err := d.write(name, cmd, append(b, body...), len(response)); err != nil {
		return nil, err
	}
	return response[:4*words], nil
}

// first returns the first word of the response: a handle.
func (d *Device) first(name string, cmd uint32, body []byte, words int) (uint32, error) {
	b, err := d.call(name, cmd, body, words)
	if err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint32(b), nil
}

func (d *Device) write(name string, cmd uint32, body []byte, responseSize int) error {
	var b request
	b.u32(cmd)
	b.u16(uint16((8+len(body))/4), uint16(responseSize/4))
	b = append(b, body...)
	if _, err := d.file.Write(b); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
