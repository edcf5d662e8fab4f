package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// validate holds every document of the files against SCHEMAS/kind.json.
func validate(schemas string, files []string, w io.Writer) error {
	var problems []error
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, document := range documents(text) {
			if kind, err := validateOne(schemas, document); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			} else {
				fmt.Fprintf(w, "%s: %s: valid\n", filepath.Base(name), kind)
			}
		}
	}
	return errors.Join(problems...)
}

func validateOne(schemas string, document []byte) (kind string, err error) {
	var tree object
	if err := yaml.Unmarshal(document, &tree); err != nil {
		return "", err
	}
	kind, _ = tree["kind"].(string)
	compiled, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, strings.ToLower(filepath.Base(kind))+".json"))
	if err != nil {
		return kind, err
	}
	// By way of JSON: numbers and keys as the API server would see them.
	text, err := json.Marshal(tree)
	if err != nil {
		return kind, err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return kind, err
	}
	return kind, compiled.Validate(value)
}
