package measure

import (
	"bytes"
	"compress/gzip"
	"os"
	"testing"
	"time"
)

const page = `# HELP x a
x{a="1"} 2
x{a="12"} 3e1
x_total 5
`

func TestSample(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write([]byte(page)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{[]byte(page), z.Bytes()} {
		if v, err := sample(body, `x{a="12"}`); err != nil || v != 30 {
			t.Errorf("%v, %v", v, err)
		}
		if _, err := sample(body, `x`); err == nil {
			t.Error("a series without its labels was found")
		}
	}
	if v, err := sum([]byte(page), "x{"); err != nil || v != 32 {
		t.Errorf("sum %v, %v", v, err)
	}
	if n := seriesOf([]byte(page), "x{"); n != 2 {
		t.Errorf("%d series", n)
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for spun := 0; ; spun++ { // until the kernel has noted some of it
		if now, err := cpuTime(os.Getpid()); err != nil || now > before {
			if err != nil {
				t.Error(err)
			}
			break
		}
	}
	if n, err := residentBytes(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := openFiles(os.Getpid()); err != nil || n < 3 {
		t.Errorf("%d files, %v", n, err)
	}
	if _, err := cpuTime(1 << 30); err == nil {
		t.Error("a process that is not there has a time")
	}
}

func TestQuantile(t *testing.T) {
	all := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(all, q); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}
