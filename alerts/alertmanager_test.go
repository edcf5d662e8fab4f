package alerts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

const exampleConfig = "alertmanager.example.yml"

func TestAmtoolCheckConfig(t *testing.T) {
	testkit.Run(t, "amtool", "check-config", exampleConfig)
}

// webhook is what Alertmanager posts.
type webhook struct {
	Alerts []struct {
		Status string
		Labels map[string]string
	}
}

// The named path silences "requests are slow" of the same model, in a real
// Alertmanager with the example configuration, and of no other model.
func TestNamedPathInhibitsSlowRequests(t *testing.T) {
	notified := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body webhook
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("webhook: %v", err)
		}
		for _, a := range body.Alerts {
			notified <- a.Labels["alertname"] + "/" + a.Labels["model"]
		}
	}))
	t.Cleanup(hook.Close)

	url := startAlertmanager(t, hook.URL)
	post(t, url+"/api/v2/alerts", []map[string]any{
		alert("GrayfailPathNamed", "critical", "qwen", "leg", "rpc-b", "cause", "loss"),
		alert("GrayfailSlowRequests", "warning", "qwen", "phase", "decode"),
		alert("GrayfailSlowRequests", "warning", "llama", "phase", "decode"),
		// The peer's own data says more than the leg.
		alert("GrayfailPeerDrops", "critical", "mistral", "leg", "rpc-c", "cause", "delay", "host", "c", "device", "eth0", "direction", "egress"),
		alert("GrayfailPathNamed", "critical", "mistral", "leg", "rpc-c", "cause", "delay"),
	})

	got := map[string]bool{}
	for want := range 3 {
		select {
		case name := <-notified:
			got[name] = true
		case <-time.After(time.Minute):
			t.Fatalf("%d notifications, want 3: %v", want, got)
		}
	}
	if !got["GrayfailPathNamed/qwen"] || !got["GrayfailSlowRequests/llama"] || !got["GrayfailPeerDrops/mistral"] {
		t.Errorf("notified of %v, want the named path, the other model's slow requests and the third's peer", got)
	}

	var inhibited []struct {
		Labels map[string]string
		Status struct{ InhibitedBy []string }
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		get(t, url+"/api/v2/alerts?active=false&silenced=false&inhibited=true", &inhibited)
		if len(inhibited) != 2 {
			return fmt.Errorf("%d inhibited alerts", len(inhibited))
		}
		return nil
	})
	for _, a := range inhibited {
		name := a.Labels["alertname"] + "/" + a.Labels["model"]
		if name != "GrayfailSlowRequests/qwen" && name != "GrayfailPathNamed/mistral" || len(a.Status.InhibitedBy) != 1 {
			t.Errorf("inhibited: %+v", a)
		}
	}
}

// startAlertmanager runs Debian's Alertmanager with the example configuration,
// its receiver replaced and its waiting cut short.
func startAlertmanager(t *testing.T, receiver string) string {
	t.Helper()
	text, err := os.ReadFile(exampleConfig)
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	for old, replacement := range map[string]string{
		"http://127.0.0.1:9099/alerts": receiver,
		"group_wait: 5s":               "group_wait: 1s",
	} {
		if strings.Count(config, old) != 1 {
			t.Fatalf("%s: no %q to replace", exampleConfig, old)
		}
		config = strings.Replace(config, old, replacement, 1)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := testkit.FreeAddr(t)
	testkit.Start(t, "prometheus-alertmanager", "--config.file="+file, "--storage.path="+dir,
		"--web.listen-address="+addr, "--cluster.listen-address=")
	testkit.Eventually(t, time.Minute, func() error {
		resp, err := http.Get("http://" + addr + "/-/ready")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("not ready: %s", resp.Status)
		}
		return nil
	})
	return "http://" + addr
}

func alert(name, severity, model string, more ...string) map[string]any {
	labels := map[string]string{
		"alertname": name, "severity": severity, "model": model,
		"job": "grayfail", "instance": "coordinator:10550", "source": "main",
	}
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return map[string]any{"labels": labels}
}

func post(t *testing.T, url string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s", url, resp.Status)
	}
}

func get(t *testing.T, url string, into any) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
}
