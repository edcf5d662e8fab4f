package rdmalab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// Netdev makes a dummy netdev that is up and holds the given addresses with
// their prefix length ("10.9.1.1/24").
func Netdev(t testing.TB, name string, addrs ...string) {
	t.Helper()
	testkit.Run(t, "modprobe", "dummy", "numdummies=0")
	testkit.Run(t, "ip", "link", "add", name, "type", "dummy")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", name).Run() })
	Up(t, name, addrs...)
}

// Veth makes a veth pair, both ends up.
func Veth(t testing.TB, a, b string) {
	t.Helper()
	testkit.Run(t, "ip", "link", "add", a, "type", "veth", "peer", "name", b)
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", a).Run() })
	Up(t, a)
	Up(t, b)
}

// Up sets a netdev up and gives it addresses.
func Up(t testing.TB, name string, addrs ...string) {
	t.Helper()
	testkit.Run(t, "ip", "link", "set", name, "up")
	for _, addr := range addrs {
		// nodad: an IPv6 address is usable at once.
		argv := []string{"addr", "add", addr, "dev", name}
		if strings.Contains(addr, ":") {
			argv = append(argv, "nodad")
		}
		testkit.Run(t, "ip", argv...)
	}
}

// TwoPort loads the device of two ports over two netdevs. It is RoCE v2, its
// control path works, and its hw counters are what SetCounters says.
func TwoPort(t testing.TB, netdev1, netdev2 string) (device string) {
	t.Helper()
	module := os.Getenv("VM_TWOPORT")
	if module == "" {
		t.Fatal("VM_TWOPORT is not set: this runs in the guest of package vm")
	}
	testkit.Run(t, "modprobe", "ib_uverbs")
	testkit.Run(t, "insmod", module, "netdevs="+netdev1+","+netdev2)
	t.Cleanup(func() { RemoveTwoPort(t) })
	return waitDevice(t, "twoport*")
}

// RemoveTwoPort unloads it, if it is loaded.
func RemoveTwoPort(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/sys/module/twoport"); err == nil {
		testkit.Run(t, "rmmod", "twoport")
	}
}

// Counters of the two-port device, in the order of SetCounters.
var Counters = [4]string{"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err"}

// SetCounters sets the hw counters of a port of the two-port device.
func SetCounters(t testing.TB, port int, values [4]uint64) {
	t.Helper()
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ","), "[]")
	path := fmt.Sprintf("/sys/module/twoport/parameters/ctr%d", port)
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// RXE makes a soft-RoCE device on a netdev.
func RXE(t testing.TB, device, netdev string) {
	t.Helper()
	testkit.Run(t, "modprobe", "crc32_generic") // rxe takes it from the crypto API and does not say so
	testkit.Run(t, "modprobe", "rdma_rxe")
	testkit.Run(t, "rdma", "link", "add", device, "type", "rxe", "netdev", netdev)
	t.Cleanup(func() { _ = exec.Command("rdma", "link", "delete", device).Run() })
	waitDevice(t, device)
}

// waitDevice waits until processes can open the device.
func waitDevice(t testing.TB, pattern string) (device string) {
	t.Helper()
	testkit.Run(t, "modprobe", "ib_uverbs")
	testkit.Eventually(t, time.Minute, func() error {
		found, _ := filepath.Glob("/sys/class/infiniband/" + pattern) // the pattern is ours
		if len(found) != 1 {
			return fmt.Errorf("%d devices %s", len(found), pattern)
		}
		device = filepath.Base(found[0])
		nodes, _ := filepath.Glob("/sys/class/infiniband_verbs/uverbs*/ibdev")
		for _, node := range nodes {
			if b, err := os.ReadFile(node); err == nil && strings.TrimSpace(string(b)) == device {
				_, err := os.Stat(filepath.Join("/dev/infiniband", filepath.Base(filepath.Dir(node))))
				return err
			}
		}
		return fmt.Errorf("%s has no uverbs node", device)
	})
	return device
}

// GIDIndex is where a port's GID table holds the address as RoCE v2.
func GIDIndex(t testing.TB, device string, port int, gid string) (index string) {
	t.Helper()
	dir := fmt.Sprintf("/sys/class/infiniband/%s/ports/%d", device, port)
	testkit.Eventually(t, time.Minute, func() error {
		files, _ := filepath.Glob(dir + "/gids/*")
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil || strings.TrimSpace(string(b)) != gid {
				continue
			}
			kind, err := os.ReadFile(filepath.Join(dir, "gid_attrs/types", filepath.Base(file)))
			if err == nil && strings.TrimSpace(string(kind)) == "RoCE v2" {
				index = filepath.Base(file)
				return nil
			}
		}
		return fmt.Errorf("%s port %d has no GID %s of RoCE v2", device, port, gid)
	})
	return index
}
