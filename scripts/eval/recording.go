package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// truth is what was done in one recording.
type truth struct {
	File    string            `yaml:"file"`
	Control map[string]string `yaml:"control"`
	Causes  []string          `yaml:"causes"`
	Leg     string            `yaml:"leg"`
}

func readTruth(path string) ([]truth, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var table struct{ Recordings []truth }
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&table); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(table.Recordings) == 0 {
		return nil, fmt.Errorf("%s: no recordings", path)
	}
	return table.Recordings, nil
}

// request is what the engine itself said of one request.
type request struct {
	Type, ID, Condition string
	Rate                float64 `json:"decode_tokens_per_second"`
}

// lines calls f for every line of a recording.
func lines(path string, f func(line []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	scanner := bufio.NewScanner(plain)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if err := f(scanner.Bytes()); err != nil {
			return err
		}
	}
	return scanner.Err()
}

func readRequests(path string) ([]request, error) {
	var out []request
	err := lines(path, func(line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		if r.Type == "request" || r.Type == "" {
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// coordinatorOnly writes a copy without the worker's lines, into a folder of
// its own that the caller removes.
func coordinatorOnly(path string) (string, error) {
	dir, err := os.MkdirTemp("", "grayfail-eval-")
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = lines(path, func(line []byte) error {
		var r struct{ Side string }
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		if r.Side != "worker" {
			out.Write(line)
			out.WriteByte('\n')
		}
		return nil
	})
	copied := filepath.Join(dir, "coordinator.jsonl")
	if err == nil {
		err = os.WriteFile(copied, out.Bytes(), 0o600)
	}
	if err != nil {
		os.RemoveAll(dir)
	}
	return copied, err
}

// row is the part of a replay row that is scored, and the whole as it was
// printed.
type row struct {
	ID, Phase, Verdict, Cause, Detail, Leg string

	printed string
}

// replay runs the exporter on one recording and returns its decode rows.
func replay(exporter, path string) ([]row, error) {
	cmd := exec.Command(exporter, "replay", "--json", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, stderr.Bytes())
	}
	var result struct {
		Requests []json.RawMessage
		BadLines int `json:"bad_lines"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	if result.BadLines != 0 {
		return nil, fmt.Errorf("%s: %d bad lines", cmd, result.BadLines)
	}
	var decode []row
	for _, printed := range result.Requests {
		r := row{printed: string(printed)}
		if err := json.Unmarshal(printed, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", cmd, err)
		}
		if r.Phase == "decode" {
			decode = append(decode, r)
		}
	}
	return decode, nil
}
