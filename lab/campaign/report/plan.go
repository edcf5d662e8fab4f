package report

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ReadMethod takes the method out of plan.json, which the runner writes before
// the first run: it is the value of the key "method". All other keys are the
// runner's own.
func ReadMethod(plan []byte) (Method, error) {
	var keys struct {
		Method json.RawMessage `json:"method"`
	}
	if err := json.Unmarshal(plan, &keys); err != nil {
		return Method{}, err
	}
	if len(keys.Method) == 0 {
		return Method{}, fmt.Errorf("method: missing")
	}
	var m Method
	d := json.NewDecoder(bytes.NewReader(keys.Method))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Method{}, fmt.Errorf("method: %w", err)
	}
	if err := m.Check(); err != nil {
		return Method{}, fmt.Errorf("method: %w", err)
	}
	return m, nil
}
