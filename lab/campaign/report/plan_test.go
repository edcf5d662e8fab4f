package report

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadMethod(t *testing.T) {
	data, err := os.ReadFile("testdata/small/plan.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadMethod(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(small(), got); diff != "" {
		t.Error(diff)
	}
	again, err := json.Marshal(map[string]any{"method": got})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := ReadMethod(again); err != nil || !cmp.Equal(second, got) {
		t.Errorf("%+v, %v", second, err)
	}
}

func TestBadPlans(t *testing.T) {
	for plan, want := range map[string]string{
		``:                                    "unexpected end of JSON input",
		`[]`:                                  "cannot unmarshal array",
		`{}`:                                  "method: missing",
		`{"method":{"speed":1}}`:              `method: json: unknown field "speed"`,
		`{"method":{"spec_hash":1}}`:          "method: json: cannot unmarshal number",
		`{"method":{"conditions":["a"]}}`:     "method: spec_hash: missing",
		`{"method":null,"spec_hash":"sha:a"}`: "method: spec_hash: missing",
	} {
		if _, err := ReadMethod([]byte(plan)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", plan, err, want)
		}
	}
}

func FuzzReadMethod(f *testing.F) {
	data, err := os.ReadFile("testdata/small/plan.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"method":{"spec_hash":"x","conditions":[],"criteria":[{"condition":""}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ReadMethod(data)
		if err != nil {
			return
		}
		res, err := Analyse(m, Runs{})
		if err != nil {
			t.Fatal(err)
		}
		res.Markdown()
	})
}
