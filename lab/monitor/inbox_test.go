package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestInbox(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	in := newInbox(l)
	defer in.close()
	send := func(body string) int {
		resp, err := http.Post("http://"+l.Addr().String(), "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent) // the second answer may come after Wait has seen its alert
		send(`{"alerts":[{"status":"resolved","labels":{"alertname":"GrayfailPathNamed","leg":"rpc-a"}}]}`)
		send(`{"alerts":[{"status":"firing","labels":{"alertname":"Other"}},{"status":"firing","labels":{"alertname":"GrayfailPathNamed","leg":"rpc-b"},"annotations":{"summary":"s"}}]}`)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	a, ok := in.Wait(ctx, "GrayfailPathNamed")
	if !ok || a.Labels["leg"] != "rpc-b" || a.Annotations["summary"] != "s" {
		t.Errorf("got %v %+v", ok, a)
	}
	<-sent
	var out bytes.Buffer
	a.Write(&out)
	if !strings.Contains(out.String(), "leg: rpc-b") || !strings.Contains(out.String(), "summary: s") {
		t.Errorf("printed %q", out.String())
	}
	if got := send("nonsense"); got != http.StatusBadRequest {
		t.Errorf("nonsense was answered with %d", got)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, ok := in.Wait(ended, "Never"); ok {
		t.Error("an alert nobody sent")
	}
}

// TestAlertShape holds the names of Alertmanager's webhook.
func TestAlertShape(t *testing.T) {
	var a Alert
	if err := json.Unmarshal([]byte(`{"status":"firing","labels":{"a":"b"},"annotations":{},"startsAt":"2026-11-30T12:00:00Z"}`), &a); err != nil || a.StartsAt.IsZero() {
		t.Errorf("%v %+v", err, a)
	}
}
