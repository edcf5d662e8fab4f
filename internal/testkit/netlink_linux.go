package testkit

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// CaptureDump sends one netlink dump request and returns what the kernel
// answered, byte for byte, up to and with the message that ends the dump. It
// uses system calls only, so that a fixture owes nothing to a decoder. Call it
// inside InNetns for another namespace.
func CaptureDump(family int, kind uint16, request []byte) ([]byte, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	head := make([]byte, unix.NLMSG_HDRLEN)
	binary.NativeEndian.PutUint32(head, uint32(len(head)+len(request)))
	binary.NativeEndian.PutUint16(head[4:], kind)
	binary.NativeEndian.PutUint16(head[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(fd, append(head, request...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	var all []byte
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		all = append(all, buf[:n]...)
		for b := buf[:n]; len(b) >= unix.NLMSG_HDRLEN; {
			switch kind := binary.NativeEndian.Uint16(b[4:]); kind {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR:
				return all, nil
			}
			size := int(binary.NativeEndian.Uint32(b)+3) &^ 3
			b = b[min(max(size, unix.NLMSG_HDRLEN), len(b)):]
		}
	}
}

// WriteFile writes a fixture, and its directory where there is none.
func WriteFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// ReadDump reads a captured dump: its messages without the one that ends it.
func ReadDump(t testing.TB, path string) []netlink.Message {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var msgs []netlink.Message
	for len(b) > 0 {
		if len(b) < unix.NLMSG_HDRLEN {
			t.Fatalf("%s: %d bytes are left over", path, len(b))
		}
		size := int(binary.NativeEndian.Uint32(b)+3) &^ 3
		var m netlink.Message
		if err := m.UnmarshalBinary(b[:min(size, len(b))]); err != nil {
			t.Fatalf("%s: message %d: %v", path, len(msgs), err)
		}
		if m.Header.Type == netlink.Done {
			return msgs
		}
		msgs = append(msgs, m)
		b = b[size:]
	}
	t.Fatalf("%s: the message that ends the dump is missing", path)
	return nil
}

// CaptureAnswer is CaptureDump for a question that is no dump: it returns the
// first datagram of the answer.
func CaptureAnswer(family int, kind uint16, request []byte) ([]byte, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	head := make([]byte, unix.NLMSG_HDRLEN)
	binary.NativeEndian.PutUint32(head, uint32(len(head)+len(request)))
	binary.NativeEndian.PutUint16(head[4:], kind)
	binary.NativeEndian.PutUint16(head[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(fd, append(head, request...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	buf := make([]byte, 64<<10)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	return buf[:max(n, 0)], os.NewSyscallError("recvfrom", err)
}
