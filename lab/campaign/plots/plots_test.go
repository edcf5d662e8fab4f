package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
	"grayfail/lab/campaign/report"
	"grayfail/lab/draw"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// results of a campaign whose conditions have the given rates; a negative one
// is a slow request, 0 one that failed.
func results(t *testing.T, conditions []string, rates [][]float64) *report.Results {
	t.Helper()
	m := report.Method{Name: "loss", SpecHash: "x", Conditions: conditions}
	var runs report.Runs
	for i, c := range conditions {
		for j, rate := range rates[i] {
			q := &report.Request{Outcome: event.OutcomeOK, Verdict: event.VerdictOK, Decode: &rate}
			switch {
			case rate < 0:
				rate = -rate
				q.Verdict = event.VerdictSlow
			case rate == 0:
				q = &report.Request{Outcome: event.OutcomeError, Verdict: report.VerdictFailed}
			}
			runs.Runs = append(runs.Runs, report.Run{
				Version: report.RunVersion, SpecHash: "x", Run: len(runs.Runs), Block: j, Condition: c, Started: time.Unix(1, 0), Valid: true, Request: q,
			})
		}
	}
	res, err := report.Analyse(m, runs)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func sample(t *testing.T) *report.Results {
	return results(t, []string{"none", "loss-5", "dead"}, [][]float64{{46, 45, 47, 44, 46.5}, {-20, 44, -12, 45, -18}, {0, 0}})
}

func drawn(t *testing.T, res *report.Results) map[string][]byte {
	t.Helper()
	files, err := Draw(res)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]byte)
	for _, f := range files {
		out[f.Name] = f.Data
	}
	if len(out) != 4 {
		t.Fatalf("%d files", len(out))
	}
	return out
}

func TestSameResultsSameBytes(t *testing.T) {
	first, second := drawn(t, sample(t)), drawn(t, sample(t))
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s differs from time to time", name)
		}
	}
	for _, name := range []string{"strip.svg", "ecdf.svg"} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, first[name], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(first[name])); diff != "" {
			t.Errorf("%s (-want +got, -update rewrites):\n%s", path, diff)
		}
	}
}

// texts of an SVG, which must be well-formed.
func texts(t *testing.T, svg []byte) string {
	t.Helper()
	var out strings.Builder
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			out.Write(text)
			out.WriteByte('\n')
		}
	}
}

func TestSVGSaysWhatIsDrawn(t *testing.T) {
	files := drawn(t, sample(t))
	for name, want := range map[string][]string{
		"strip.svg": {"loss: every request", "none", "5 requests, 0 slow", "loss-5", "5 requests, 3 slow", "dead", "2 requests, 2 slow", "2 not drawn", "decode, tokens per second", "a slow request"},
		"ecdf.svg":  {"none (n = 5)", "loss-5 (n = 5)", "part of the requests at or below"},
	} {
		got := texts(t, files[name])
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q is missing from %q", name, w, got)
			}
		}
		if !bytes.Contains(files[name], []byte("Liberation Sans,Arial")) {
			t.Errorf("%s names no other font", name)
		}
	}
}

// Whatever a condition is called, the drawing stays one.
func TestNames(t *testing.T) {
	files := drawn(t, results(t, []string{"<script>&\"", "\x00\x1b\n", strings.Repeat("w", 300) + "-10ms"}, [][]float64{{1}, {2}, {3}}))
	if got := texts(t, files["strip.svg"]); !strings.Contains(got, `<script>&"`) || strings.Contains(got, strings.Repeat("w", 50)) || !strings.Contains(got, "…wwwwwwwwwwww-10ms") {
		t.Errorf("%q", got)
	}
}

// The PNG holds the colours of both conditions on white.
func TestPNG(t *testing.T) {
	for name, data := range drawn(t, sample(t)) {
		if filepath.Ext(name) != ".png" {
			continue
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		size := img.Bounds().Size()
		if size.X < 1000 || size.Y < 400 {
			t.Errorf("%s: %v", name, size)
		}
		rgba, ok := img.(*image.RGBA) // opaque
		if !ok {
			t.Fatalf("%s: %T", name, img)
		}
		seen := make(map[color.RGBA]int)
		for p := rgba.Pix; len(p) > 0; p = p[4:] {
			seen[color.RGBA{p[0], p[1], p[2], p[3]}]++
		}
		if white := seen[color.RGBA{0xff, 0xff, 0xff, 0xff}]; white < size.X*size.Y/2 {
			t.Errorf("%s: %d of %d points are white", name, white, size.X*size.Y)
		}
		for i := range 2 {
			if seen[draw.Color(i)] < 50 {
				t.Errorf("%s: %d points of %v", name, seen[draw.Color(i)], draw.Color(i))
			}
		}
	}
}

func TestEachConditionLooksDifferent(t *testing.T) {
	seen := make(map[string]int)
	for i := range MaxConditions {
		look := fmt.Sprint(draw.Color(i), draw.Dashes(i))
		if before, ok := seen[look]; ok {
			t.Errorf("conditions %d and %d look the same", before, i)
		}
		seen[look] = i
	}
}

func TestNothingAndTooMuch(t *testing.T) {
	if _, err := Draw(results(t, []string{"dead"}, [][]float64{{0}})); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
	var names []string
	for i := range MaxConditions + 1 {
		names = append(names, fmt.Sprint("c", i))
	}
	rates := make([][]float64, len(names))
	rates[0] = []float64{1}
	if _, err := Draw(results(t, names, rates)); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
	for _, res := range []*report.Results{
		results(t, names[:MaxConditions], rates),
		results(t, []string{"tiny"}, [][]float64{{1e-12, 1e-12}}),
		results(t, []string{"huge"}, [][]float64{{1e9, 1}}),
	} {
		for _, kind := range kinds {
			d, err := kind.draw(res)
			if err != nil {
				t.Fatal(err)
			}
			svg, err := d.SVG()
			if err != nil {
				t.Fatal(err)
			}
			texts(t, svg)
		}
	}
}
