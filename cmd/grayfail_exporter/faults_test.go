package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"grayfail/internal/testkit"
)

// Faults of docs/faults.md that concern the whole program.

// TestNamespaceComesAndGoes: a watched namespace is removed while it is read,
// and made again under the same name.
func TestNamespaceComesAndGoes(t *testing.T) {
	name := testkit.Netns(t, fmt.Sprintf("gf-trust-gone-%d", os.Getpid()))
	e := startExporter(t, "--config.file", writeFile(t, "namespaces: {names: ["+name+"]}"))
	shown := func(want bool) {
		t.Helper()
		eventually(t, func() error {
			_, page := e.get("/metrics")
			series := grep(page, `grayfail_qdisc_bytes_total{device="gone0"`)
			problem := grep(page, `reason="netns_not_found"`)
			if (series != "") != want || (problem != "") == want {
				return fmt.Errorf("want %t: %s%s", want, series, problem)
			}
			return nil
		})
	}
	fill := func() {
		t.Helper()
		testkit.Run(t, "ip", "-n", name, "link", "add", "gone0", "type", "veth", "peer", "name", "gone1")
		testkit.Run(t, "ip", "-n", name, "link", "set", "gone0", "up")
		testkit.Run(t, "tc", "-n", name, "qdisc", "add", "dev", "gone0", "root", "pfifo")
	}
	fill()
	shown(true)
	for range 3 {
		testkit.Run(t, "ip", "netns", "del", name)
		shown(false)
		testkit.Run(t, "ip", "netns", "add", name)
		fill()
		shown(true)
	}
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d\n%s", code, e.log)
	}
}

// TestWithoutBTF hides the kernel's type information from the exporter alone.
func TestWithoutBTF(t *testing.T) {
	testkit.RequireRoot(t)
	self := copySelf(t)
	d := testkit.Start(t, "unshare", "--mount", "--propagation", "private", "sh", "-c",
		`mount -t tmpfs none /sys/kernel/btf && for f in /boot /lib/modules /usr/lib/modules; do [ ! -d $f ] || mount -t tmpfs none $f; done && exec "$0" "$@"`,
		"env", "GRAYFAIL_EXPORTER_MAIN=1", self, "serve", "--web.listen-address", "127.0.0.1:0", "--sample.interval", "50ms")
	e := attached(t, d)
	eventually(t, func() error {
		_, page := e.get("/metrics")
		for _, want := range []string{
			`grayfail_collector_up{collector="tcp_events"} 0`,
			`grayfail_collector_problem_info{collector="tcp_events",reason="no_btf"} 1`,
			`grayfail_collector_up{collector="qdisc"} 1`, `grayfail_collector_up{collector="tcp_sockets"} 1`,
		} {
			if !strings.Contains(page, want) {
				return fmt.Errorf("no %s in:\n%s", want, grep(page, "grayfail_collector"))
			}
		}
		return nil
	})
	if !strings.Contains(d.Output(), "CONFIG_DEBUG_INFO_BTF") {
		t.Errorf("the log does not say what is missing:\n%s", d.Output())
	}
}

// attached waits until a child serves.
func attached(t *testing.T, d *testkit.Daemon) *exporter {
	t.Helper()
	e := &exporter{t: t, log: &testkit.Buffer{}}
	eventually(t, func() error {
		m := listenLine.FindStringSubmatch(d.Output())
		if m == nil {
			return fmt.Errorf("no listener yet:\n%s", d.Output())
		}
		e.url = "http://" + m[1]
		if code, body := e.get("/-/ready"); code != http.StatusOK {
			return fmt.Errorf("not ready: %s", body)
		}
		return nil
	})
	return e
}

// streaming is an engine that streams eight tokens.
func streaming(t *testing.T) *httptest.Server {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 8 {
			fmt.Fprint(w, `data: {"model":"m","choices":[{"index":0,"delta":{"content":"x"}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		fmt.Fprint(w, `data: {"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":8}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(upstream.Close)
	return upstream
}

// TestReloadUnderLoad: no request fails and none is lost while the
// configuration is read again all the time.
func TestReloadUnderLoad(t *testing.T) {
	listen, upstream := testkit.FreeAddr(t), streaming(t)
	path := writeFile(t, "")
	configure := func(n int) {
		text := fmt.Sprintf("legs: {discover: {ports: [%d]}}\nrequests:\n  push: {enabled: true}\n  proxies: [{name: main, listen: %q, upstream: %q, request_timeout: %ds}]\n", 50000+n, listen, upstream.URL, 60+n)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(0)
	e := startExporter(t, "--config.file", path)
	const workers, each, reloads = 8, 25, 30
	var failed atomic.Int64
	var load sync.WaitGroup
	for w := range workers {
		load.Go(func() {
			for i := range each {
				resp, err := http.Post("http://"+listen+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true}`))
				if err != nil {
					failed.Add(1)
					continue
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || !strings.HasSuffix(string(body), "[DONE]\n\n") {
					failed.Add(1)
				}
				if code, _ := e.post("/api/v1/requests", pushed(fmt.Sprintf("w%d-%d", w, i), 1, 100)); code != http.StatusAccepted {
					failed.Add(1)
				}
			}
		})
	}
	for n := range reloads {
		configure(n)
		if code, body := e.post("/-/reload", ""); code != http.StatusOK {
			t.Errorf("reload: %d %s", code, body)
		}
	}
	load.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d calls failed", n)
	}
	eventually(t, func() error {
		_, page := e.get("/metrics")
		for _, source := range []string{"main", "push"} {
			if want := fmt.Sprintf(`grayfail_requests_total{model="m",outcome="ok",source=%q} %d`, source, workers*each); !strings.Contains(page, want+"\n") {
				return fmt.Errorf("no %s in:\n%s", want, grep(page, "grayfail_requests_total"))
			}
		}
		return nil
	})
}

var acceptedCount = regexp.MustCompile(`"accepted":(\d+)`)

// TestStopUnderLoad: what was accepted before or during a stop is in the
// recording; what came too late was refused.
func TestStopUnderLoad(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "rec.jsonl")
	e := startExporter(t, "--config.file", writeFile(t, pushOn), "--record", recording)
	var accepted atomic.Int64
	var load sync.WaitGroup
	for w := range 8 {
		load.Go(func() {
			for i := 0; ; i++ {
				resp, err := http.Post(e.url+"/api/v1/requests", "application/json", strings.NewReader(pushed(fmt.Sprintf("s%d-%d", w, i), 20, 100)))
				if err != nil {
					return // it has gone
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusAccepted {
					return
				}
				n, err := strconv.Atoi(acceptedCount.FindStringSubmatch(string(body))[1])
				if err != nil {
					t.Error(err)
					return
				}
				accepted.Add(int64(n))
			}
		})
	}
	eventually(t, func() error {
		if n := accepted.Load(); n < 2000 {
			return fmt.Errorf("%d accepted so far", n)
		}
		return nil
	})
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d\n%s", code, e.log)
	}
	load.Wait()
	recorded := int64(strings.Count(readFile(t, recording), `"source":"push"`))
	if recorded < accepted.Load() {
		t.Errorf("%d accepted, %d in the recording", accepted.Load(), recorded)
	}
	t.Logf("%d accepted, %d recorded", accepted.Load(), recorded)
}

// TestTwoExportersOneHost: both see every exchange, and the end of one does
// not disturb the other.
func TestTwoExportersOneHost(t *testing.T) {
	port := freePort(t)
	config := writeFile(t, "legs: {discover: {ports: ["+port+"]}}")
	first, second := startExporter(t, "--config.file", config), startExporter(t, "--config.file", config)
	for _, e := range []*exporter{first, second} {
		eventually(t, func() error { return clockedOn(t, e, port) })
	}
	if code := first.stop(); code != exitOK {
		t.Errorf("exit %d\n%s", code, first.log)
	}
	count := func() float64 {
		_, page := second.get("/metrics")
		_, value, _ := strings.Cut(strings.TrimSpace(grep(page, `grayfail_tcp_exchange_seconds_count{leg="127.0.0.1:`+port+`"}`)), "} ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		return n
	}
	before := count()
	eventually(t, func() error {
		if err := clockedOn(t, second, port); err != nil {
			return err
		}
		if now := count(); now <= before {
			return fmt.Errorf("%g exchanges, as before", now)
		}
		return nil
	})
}

// TestStateOfAnotherUser: the service's user finds a state that root has left
// behind, and then a directory in which it may not write.
func TestStateOfAnotherUser(t *testing.T) {
	testkit.RequireRoot(t)
	self := copySelf(t)
	for name, c := range map[string]struct {
		owner  int
		up     string
		reason string
	}{
		"a file of root in its own directory": {65534, "1", "unreadable"},
		"a directory of root":                 {0, "0", "no_permission"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(filepath.Dir(self), fmt.Sprint("state-", c.owner))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, stateFile), savedState(t), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(dir, c.owner, c.owner); err != nil {
				t.Fatal(err)
			}
			config := filepath.Join(filepath.Dir(self), "push.yml")
			testkit.WriteFile(t, config, []byte(pushOn))
			d := testkit.Start(t, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", "GRAYFAIL_EXPORTER_MAIN=1", self,
				"serve", "--web.listen-address", "127.0.0.1:0", "--config.file", config, "--state.dir", dir, "--state.interval", "10ms")
			e := attached(t, d)
			e.push(ended("x", 11, 100))
			eventually(t, func() error {
				_, page := e.get("/metrics")
				for _, want := range []string{`grayfail_collector_up{collector="state"} ` + c.up, fmt.Sprintf(`{collector="state",reason=%q} 1`, c.reason)} {
					if !strings.Contains(page, want) {
						return fmt.Errorf("no %s in:\n%s", want, grep(page, `"state"`))
					}
				}
				return nil
			})
			eventually(t, func() error {
				if b, err := e.decodeBaseline(); err != nil || b.Samples != 11 {
					return fmt.Errorf("baseline %+v, %w: root's may not be believed", b, err)
				}
				return nil
			})
		})
	}
}
