package trial

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"grayfail/event"
)

// maxLine bounds a line of a recording.
const maxLine = 1 << 20

// Label copies a recording and gives each request the condition of the act in
// which it started. Every other line is copied byte for byte. Acts in which the
// cluster was being prepared ("" or none) leave a request without condition.
func Label(to io.Writer, from io.Reader, acts []Act) (requests int, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		rec, err := event.ParseRecord(line)
		if err != nil {
			return requests, fmt.Errorf("line %d: %w", n, err)
		}
		if req, ok := rec.(*event.Request); ok {
			requests++
			req.Condition = conditionAt(req, acts)
			if line, err = json.Marshal(req); err != nil {
				return requests, fmt.Errorf("line %d: %w", n, err)
			}
		}
		if _, err := fmt.Fprintf(to, "%s\n", line); err != nil {
			return requests, err
		}
	}
	return requests, lines.Err()
}

func conditionAt(r *event.Request, acts []Act) string {
	at := r.StartNS
	if at == 0 {
		at = r.EndNS
	}
	for _, a := range acts {
		if a.From.UnixNano() <= at && at <= a.To.UnixNano() {
			return a.Condition
		}
	}
	return ""
}

// LabelFile is Label from one gzip file to a new one.
func LabelFile(to, from string, acts []Act) (requests int, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	plain, err := gzip.NewReader(in)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", from, err)
	}
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	packed := gzip.NewWriter(out)
	if requests, err = Label(packed, plain, acts); err != nil {
		return requests, fmt.Errorf("%s: %w", from, err)
	}
	if err := packed.Close(); err != nil {
		return requests, err
	}
	return requests, out.Close()
}
