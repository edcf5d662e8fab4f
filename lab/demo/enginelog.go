package demo

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// logMarks remembers how long the engine's logs were.
type logMarks map[string]int64

func markLogs(paths []string) (logMarks, error) {
	marks := logMarks{}
	for _, p := range paths {
		st, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		marks[p] = st.Size()
	}
	return marks, nil
}

// telling is what a log would say if it knew of the fault. llama-server also
// marks each line with a level: W and E count whatever they say.
var telling = regexp.MustCompile(`(?i)^[0-9.]+ [WE] |\b(loss|lost|retransmi\w*|retry|retries|time[d ]*out|slow\w*|stall\w*|delay\w*|warn\w*|err\w*|fail\w*|network|unreachable|reset)\b`)

// since reads what was written after the mark: how many lines, and those that
// tell of a fault.
func (m logMarks) since() (lines int, tell []string, err error) {
	for path, from := range m {
		data, err := readFrom(path, from)
		if err != nil {
			return 0, nil, err
		}
		for line := range strings.Lines(data) {
			lines++
			if telling.MatchString(line) {
				tell = append(tell, strings.TrimSpace(line))
			}
		}
	}
	return lines, tell, nil
}

func readFrom(path string, from int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	data, err := io.ReadAll(f)
	return string(data), err
}
