package event

import (
	"encoding/json"
	"testing"
	"time"
)

func TestHTTPStagesJSON(t *testing.T) {
	row := Row{HTTP: &HTTPStages{Upstream: "gpu:8080", Reused: true, Durations: map[HTTPStage]time.Duration{HTTPStageFirstByte: 40 * time.Millisecond}}}
	text, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		HTTP json.RawMessage `json:"http"`
	}
	if err := json.Unmarshal(text, &got); err != nil || string(got.HTTP) != `{"reused":true,"stages_ms":{"first_byte":40}}` {
		t.Errorf("%s, %v", got.HTTP, err)
	}
	if text, err = json.Marshal(Row{}); err != nil {
		t.Fatal(err)
	}
	if got.HTTP = nil; json.Unmarshal(text, &got) != nil || got.HTTP != nil {
		t.Errorf("unknown stages are written as %s", got.HTTP)
	}
}
