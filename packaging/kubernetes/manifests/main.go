// Command manifests makes and checks the manifests for Kubernetes.
//
// In: alerts/*.rules.yml, or custom resource definitions, or manifests. Out: a
// PrometheusRule, or a JSON schema, or what is wrong.
//
//	manifests rule FILE...              a PrometheusRule of these rule files
//	manifests schema FILE APIVERSION    the strict JSON schema of a definition
//	manifests validate SCHEMAS FILE...  each document against its kind's schema
//
// It is a module of its own: what only checks files must not weigh on the
// exporter's dependencies.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	err := errors.New("usage: manifests rule FILE... | schema FILE APIVERSION | validate SCHEMAS FILE...")
	switch {
	case len(args) >= 2 && args[0] == "rule":
		err = rule(args[1:], stdout)
	case len(args) == 3 && args[0] == "schema":
		err = schema(args[1], args[2], stdout)
	case len(args) >= 3 && args[0] == "validate":
		err = validate(args[1], args[2:], stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "manifests: %v\n", err)
		return 1
	}
	return 0
}

// documents splits a YAML file as kubectl does.
func documents(text []byte) [][]byte {
	return bytes.Split(append([]byte("\n"), text...), []byte("\n---\n"))
}
