package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

// TestWithoutRDMA: on a kernel without InfiniBand one collector is not up, for
// one reason, and every leg is tcp.
func TestWithoutRDMA(t *testing.T) {
	// Where the RDMA core is loaded the legs are tcp all the same: loopback
	// has no GID. The guest of lab/vm tests what else there is then.
	_, err := os.Stat("/sys/class/infiniband")
	loaded := err == nil
	up := map[bool]string{false: "0", true: "1"}[loaded]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const size = 10_000
	for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
		if _, err := way[0].Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(way[1], make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	port := l.Addr().(*net.TCPAddr).Port
	e := startExporter(t, "--config.file", writeFile(t, fmt.Sprintf("legs: {discover: {ports: [%d]}}", port)))
	eventually(t, func() error {
		_, body := e.get("/metrics")
		for _, want := range []string{
			fmt.Sprintf(`grayfail_leg_transport{leg="127.0.0.1:%d",transport="tcp"} 1`, port),
			`grayfail_leg_transport{leg="from 127.0.0.1",transport="tcp"} 1`,
			fmt.Sprintf(`grayfail_leg_fallback{leg="127.0.0.1:%d",reason=""} 0`, port),
			`grayfail_collector_up{collector="rdma"} ` + up,
			`grayfail_collector_up{collector="tcp_sockets"} 1`,
			`grayfail_collector_up{collector="qdisc"} 1`,
		} {
			if !strings.Contains(body, want+"\n") {
				return fmt.Errorf("no %s in:\n%s", want, grep(body, "grayfail_leg_"))
			}
		}
		return nil
	})
	if loaded {
		return
	}
	_, body := e.get("/metrics")
	problems := strings.TrimSpace(grep(body, `grayfail_collector_problem_info{collector="rdma"`))
	if strings.Count(problems, "grayfail_collector_problem_info{") != 1 || !strings.Contains(problems, `reason="not_supported"`) {
		t.Errorf("problems of rdma:\n%s", problems)
	}
	if strings.Contains(body, "\ngrayfail_rdma_") {
		t.Errorf("RDMA metrics without RDMA:\n%s", grep(body, "grayfail_rdma_"))
	}
	if n := strings.Count(e.log.String(), `"collector rdma: `); n != 1 {
		t.Errorf("said %d times in the log, want once:\n%s", n, e.log)
	}
}
