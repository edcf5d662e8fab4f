package measure

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// sample is the value of one series in an answer to a scrape, plain or gzip.
func sample(body []byte, name string) (float64, error) {
	if bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		if body, err = io.ReadAll(z); err != nil {
			return 0, err
		}
	}
	for line := range strings.Lines(string(body)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(text), 64)
		}
	}
	return 0, fmt.Errorf("no series %s", name)
}

// seriesOf counts the series of a plain answer that begin so.
func seriesOf(body []byte, prefix string) (n int) {
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// sum of the series of a plain answer that begin so.
func sum(body []byte, prefix string) (total float64, err error) {
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
		total += v
	}
	return total, nil
}
