package rdmalab

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// RXEPair makes two soft-RoCE devices, rxe0 on ve1 and rxe1 on ve2, that reach
// each other. On 6.1 rxe receives in the first network namespace only, so that
// both ends are here: packets between two addresses of one host need to be let
// in (accept_local) and go out by the device that rxe names.
func RXEPair(t testing.TB, a, b netip.Prefix) {
	t.Helper()
	Veth(t, "ve1", "ve2")
	Up(t, "ve1", a.String())
	Up(t, "ve2", b.String())
	for _, dev := range []string{"all", "ve1", "ve2"} {
		testkit.Run(t, "sysctl", "-qw", "net.ipv4.conf."+dev+".accept_local=1", "net.ipv4.conf."+dev+".rp_filter=0")
	}
	neighbour(t, "ve1", b.Addr(), "ve2")
	neighbour(t, "ve2", a.Addr(), "ve1")
	RXE(t, "rxe0", "ve1")
	RXE(t, "rxe1", "ve2")
}

// neighbour says that an address is reached through dev at the netdev peer.
func neighbour(t testing.TB, dev string, addr netip.Addr, peer string) {
	t.Helper()
	mac, err := os.ReadFile("/sys/class/net/" + peer + "/address")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Run(t, "ip", "neigh", "replace", addr.String(), "lladdr", strings.TrimSpace(string(mac)), "dev", dev, "nud", "permanent")
}

// PingPong sends count messages of size bytes from rxe0 at address a to rxe1
// at b, and as many back, and returns when all have arrived.
func PingPong(t testing.TB, a, b netip.Addr, count, size int) {
	t.Helper()
	dir := os.Getenv("VM_VERBS")
	if dir == "" {
		t.Fatal("VM_VERBS is not set: this runs in the guest of package vm")
	}
	// An absolute name is loaded as it is (libibverbs/dynamic_driver.c).
	drivers, _ := filepath.Glob(dir + "/usr/lib/*/libibverbs/librxe-rdmav*.so")
	if len(drivers) != 1 {
		t.Fatalf("no driver of rxe: %v", drivers)
	}
	driver, _, _ := strings.Cut(drivers[0], "-rdmav")
	pingPong := func(device string, addr netip.Addr, more ...string) *exec.Cmd {
		argv := []string{"-d", device, "-g", GIDIndex(t, device, 1, GID(addr)), "-n", fmt.Sprint(count), "-s", fmt.Sprint(size), "-p", "18515"}
		cmd := exec.Command(dir+"/usr/bin/ibv_rc_pingpong", append(argv, more...)...)
		cmd.Env = append(os.Environ(), "IBV_DRIVERS="+driver, "RDMAV_DRIVERS="+driver)
		return cmd
	}
	server := pingPong("rxe1", b)
	var said strings.Builder
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	defer func() { _ = server.Process.Kill() }()
	testkit.Eventually(t, 30*time.Second, func() error {
		if !strings.Contains(testkit.Run(t, "ss", "-Hltn", "sport", "=", ":18515"), "18515") {
			return fmt.Errorf("ibv_rc_pingpong does not listen: %s", said.String())
		}
		return nil
	})
	if out, err := pingPong("rxe0", a, "127.0.0.1").CombinedOutput(); err != nil {
		t.Fatalf("ibv_rc_pingpong: %v\n%s", err, out)
	}
	if err := <-ended; err != nil {
		t.Fatalf("ibv_rc_pingpong, the server: %v\n%s", err, said.String())
	}
}
