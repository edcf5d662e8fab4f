package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

const ruleHead = `# Code generated from alerts/*.rules.yml by "make generate". DO NOT EDIT.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: grayfail
  namespace: grayfail
  labels: {app.kubernetes.io/name: grayfail} # and the one your Prometheus selects by
spec:
  groups:
`

// rule writes the groups of rule files as one PrometheusRule, comments and all.
func rule(files []string, w io.Writer) error {
	all := &yaml.Node{Kind: yaml.SequenceNode}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var file struct{ Groups yaml.Node }
		if err := yaml.Unmarshal(text, &file); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all.Content = append(all.Content, file.Groups.Content...)
	}
	if len(all.Content) == 0 {
		return errors.New("no groups in the rule files")
	}
	if _, err := io.WriteString(w, ruleHead); err != nil {
		return err
	}
	enc := yaml.NewEncoder(&indenter{w: w, indent: "    ", start: true})
	enc.SetIndent(2)
	if err := enc.Encode(all); err != nil {
		return err
	}
	return enc.Close()
}

// indenter sets every line that is not empty back by indent.
type indenter struct {
	w      io.Writer
	indent string
	start  bool // of a line
}

func (i *indenter) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p)*2)
	for _, b := range p {
		if i.start && b != '\n' {
			out = append(out, i.indent...)
		}
		out = append(out, b)
		i.start = b == '\n'
	}
	if _, err := i.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
