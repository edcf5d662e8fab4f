// Package strictyaml reads YAML into a struct and says exactly what it could
// not use.
//
// In: bytes and a pointer to a struct with yaml tags that already holds the
// defaults. Out: every problem at once, each with line, field and what is
// allowed; and the line of every field that was set, so that later checks can
// name it too.
package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"bytes"

	"go.yaml.in/yaml/v3"
)

// FieldError is one problem at one place.
type FieldError struct {
	Line  int    // 1-based; 0 when the field is not in the file
	Field string // dotted path, for example legs.static[0].peer
	Msg   string
}

func (e *FieldError) Error() string {
	switch {
	case e.Field == "":
		return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.Field, e.Msg)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Field, e.Msg)
}

// Lines maps a field's dotted path to its line.
type Lines map[string]int

// Error makes a FieldError for field. A field that is not in the file itself
// gets the line of the nearest one around it.
func (l Lines) Error(field, format string, args ...any) error {
	line, at := 0, field
	for line == 0 && at != "" {
		line = l[at]
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	return &FieldError{Line: line, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// maxNodes bounds what aliases can blow a small file up to.
const maxNodes = 100_000

type decoder struct {
	lines Lines
	errs  []error
	nodes int
}

// Decode reads one YAML document into the struct that into points at. Fields
// that are absent or null keep their value. The error joins every problem.
func Decode(data []byte, into any) (Lines, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return Lines{}, nil
	} else if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document: one is allowed")
	}
	d := &decoder{lines: Lines{}}
	d.value(doc.Content[0], reflect.ValueOf(into).Elem(), "")
	return d.lines, errors.Join(d.errs...)
}

func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.errs = append(d.errs, &FieldError{n.Line, path, fmt.Sprintf(format, args...)})
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if d.nodes++; d.nodes > maxNodes {
		if d.nodes == maxNodes+1 {
			d.fail(n, path, "more than %d values (aliases counted as often as used)", maxNodes)
		}
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.lines[path] = n.Line
	if n.Tag == "!!null" {
		return
	}
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) text(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "expected one value, found %s", kindName(n))
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
		d.fail(n, path, "%v", err)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "expected fields, found %s", kindName(n))
		return
	}
	var names []string
	for i := range v.NumField() {
		names = append(names, v.Type().Field(i).Tag.Get("yaml"))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		full := strings.TrimPrefix(path+"."+key.Value, ".")
		at := slices.Index(names, key.Value)
		switch {
		case at < 0:
			d.fail(key, full, "unknown field; allowed here: %s", strings.Join(names, ", "))
		case seen[key.Value]:
			d.fail(key, full, "given twice")
		default:
			seen[key.Value] = true
			d.value(val, v.Field(at), full)
		}
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "expected a list, found %s", kindName(n))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, list.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(list)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	want := map[reflect.Kind]string{
		reflect.Bool: "true or false", reflect.String: "text", reflect.Float64: "a number",
		reflect.Int: "a whole number", reflect.Uint16: "a whole number from 0 to 65535",
	}[v.Kind()]
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "expected %s, found %s", want, kindName(n))
		return
	}
	if err := n.Decode(v.Addr().Interface()); err != nil {
		d.fail(n, path, "expected %s, found %q", want, n.Value)
	}
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}
