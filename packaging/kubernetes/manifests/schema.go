package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

type object = map[string]any

// metadata is what a definition leaves out: k8s.io/apimachinery's ObjectMeta,
// as far as a manifest sets it.
func metadata() object {
	texts := object{"type": "object", "additionalProperties": object{"type": "string"}}
	name := object{"type": "string", "pattern": `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`, "maxLength": 253}
	return object{
		"type": "object", "required": []string{"name"}, "additionalProperties": false,
		"properties": object{"name": name, "namespace": name, "labels": texts, "annotations": texts},
	}
}

// schema writes the schema of a definition's first version: strict, that is
// without fields that it does not name, and without status, which is not for
// manifests.
//
// The definitions that are made of k8s.io/api lack the group, so the version is
// given.
func schema(file, apiVersion string, w io.Writer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema object `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(crd.Spec.Versions) == 0 {
		return fmt.Errorf("%s: no custom resource definition", file)
	}
	s := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	properties, ok := s["properties"].(object)
	if !ok {
		return fmt.Errorf("%s: no properties", file)
	}
	delete(properties, "status")
	properties["apiVersion"] = object{"const": apiVersion}
	properties["kind"] = object{"const": crd.Spec.Names.Kind}
	properties["metadata"] = metadata()
	s["required"] = []string{"apiVersion", "kind", "metadata"}
	if _, ok := properties["spec"]; ok {
		s["required"] = []string{"apiVersion", "kind", "metadata", "spec"}
	}
	strict(s)
	return json.NewEncoder(w).Encode(s)
}

// strict closes every object that names its fields.
func strict(node any) {
	switch n := node.(type) {
	case object:
		if p, ok := n["properties"].(object); ok && n["type"] == "object" {
			if _, open := n["additionalProperties"]; !open && len(p) > 0 {
				n["additionalProperties"] = false
			}
		}
		for _, child := range n {
			strict(child)
		}
	case []any:
		for _, child := range n {
			strict(child)
		}
	}
}
