package join

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// Files of a process of uid 1000 on Debian's 6.1 kernel, cut to the lines
// around those that are read.
const (
	status = "Name:\tllama-server\nVmLck:\t       0 kB\nVmPin:\t    6400 kB\nVmHWM:\t  517900 kB\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"
	limits = "Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max processes             31381                31381                processes \n" +
		"Max open files            1024                 524288               files     \n" +
		"Max locked memory         8388608              8388608              bytes     \n" +
		"Max address space         unlimited            unlimited            bytes     \n"
	rootStatus      = "VmPin:\t       0 kB\nCapEff:\t000001ffffffffff\n"
	unlimited       = "Max locked memory         unlimited            unlimited            bytes     \n"
	firstMap        = "         0          0 4294967295\n"
	containerMap    = "         0     100000      65536\n"
	environ         = "PATH=/usr/bin\x00GGML_RDMA_DEV=mlx5_1\x00GGML_RPC_NO_RDMA=1\x00HOME=/\x00"
	device          = "7/root/dev/infiniband/uverbs0"
	withoutDevices  = "7/root/dev/null"
	withOtherDevice = "7/root/dev/infiniband/rdma_cm"
)

func TestReadProcess(t *testing.T) {
	limited := Process{Limited: true, MemlockBytes: 8 << 20, PinnedBytes: 6400 << 10}
	for name, c := range map[string]struct {
		files map[string]string
		want  Process
	}{
		"gone":              {nil, Process{}},
		"limited":           {map[string]string{"7/status": status, "7/limits": limits, "7/uid_map": firstMap, device: ""}, limited},
		"unlimited":         {map[string]string{"7/status": status, "7/limits": unlimited}, Process{}},
		"root is exempt":    {map[string]string{"7/status": rootStatus, "7/limits": limits, "7/uid_map": firstMap}, Process{}},
		"root, map hidden":  {map[string]string{"7/status": rootStatus, "7/limits": limits}, Process{}},
		"root of a box":     {map[string]string{"7/status": rootStatus, "7/limits": limits, "7/uid_map": containerMap}, Process{Limited: true, MemlockBytes: 8 << 20}},
		"no limits":         {map[string]string{"7/status": status}, Process{}},
		"no status":         {map[string]string{"7/limits": limits}, Process{}},
		"environment":       {map[string]string{"7/environ": environ}, Process{Device: "mlx5_1", NoRDMA: true}},
		"environment, off":  {map[string]string{"7/environ": "GGML_RPC_NO_RDMA=0\x00GGML_RDMA_DEV=\x00"}, Process{}},
		"no infiniband":     {map[string]string{withoutDevices: ""}, Process{NoDevices: true}},
		"no uverbs":         {map[string]string{withOtherDevice: ""}, Process{NoDevices: true}},
		"uverbs":            {map[string]string{device: "", withoutDevices: ""}, Process{}},
		"nonsense":          {map[string]string{"7/status": "VmPin:\nCapEff:\n", "7/limits": "Max locked memory 1\n"}, Process{}},
		"nonsense, numbers": {map[string]string{"7/status": "VmPin: 99999999999999999999 kB\nCapEff: 0\n", "7/limits": limits}, Process{}},
	} {
		proc := fstest.MapFS{}
		for file, text := range c.files {
			proc[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if diff := cmp.Diff(c.want, ReadProcess(proc, 7)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestReadRealProcess: this kernel's files, of a process of another user with
// a limit and an environment of its own.
func TestReadRealProcess(t *testing.T) {
	cmd := exec.Command("sh", "-c", "ulimit -l 123 && echo && read _")
	cmd.Env = []string{"GGML_RDMA_DEV=none"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	ready, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hold.Close(); _ = cmd.Wait() })
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	p := ReadProcess(os.DirFS("/proc"), pid)
	if !p.Limited || p.MemlockBytes != 123<<10 || p.PinnedBytes != 0 || p.Device != "none" {
		t.Errorf("%+v", p)
	}
	if _, err := fs.Stat(os.DirFS("/dev"), "infiniband"); err != nil && !p.NoDevices {
		t.Errorf("%+v without /dev/infiniband", p)
	}
}

func FuzzReadProcess(f *testing.F) {
	f.Add(status, limits, environ, firstMap)
	f.Add(rootStatus, unlimited, "", containerMap)
	f.Fuzz(func(t *testing.T, status, limits, environ, uidMap string) {
		p := ReadProcess(fstest.MapFS{
			"7/status": {Data: []byte(status)}, "7/limits": {Data: []byte(limits)},
			"7/environ": {Data: []byte(environ)}, "7/uid_map": {Data: []byte(uidMap)},
		}, 7)
		if !p.Limited && (p.MemlockBytes != 0 || p.PinnedBytes != 0) {
			t.Errorf("%+v", p)
		}
	})
}
