package engine

import "strings"

// kind of a JSON value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindObject
	kindArray
)

// value is what the scanner tells of one JSON value. Objects and arrays are
// told when they open, everything else when it ends.
type value struct {
	kind  kind
	truth bool // of kindBool
	// number of kindNumber, as far as float64 goes.
	number float64
	// filled says that a string is not empty.
	filled bool
	// text of a string, raw (escapes not undone) and at most maxText bytes;
	// only for fields that ask for it.
	text []byte
}

// maxCount is more tokens than any answer or prompt has.
const maxCount = 1e9

// count reads a token count; false for what cannot be one.
func (v value) count() (int, bool) {
	if v.kind != kindNumber || v.number < 0 || v.number > maxCount {
		return 0, false
	}
	return int(v.number), true
}

// milliseconds reads a duration; false for what cannot be one.
func (v value) milliseconds() (float64, bool) {
	if v.kind != kindNumber || v.number < 0 || v.number > 1e15 {
		return 0, false
	}
	return v.number, true
}

// meaning is what a field does to the document it stands in.
type meaning func(*document, value)

// field is one line of a shape's table: a path ("choices[].delta.content")
// and its meaning.
type field struct {
	path string
	mean meaning
	// text asks for the text of a string, not only whether there is any.
	text bool
}

// node is one step in the tree of all known paths.
type node struct {
	keys map[string]*node
	elem *node // of an array
	mean meaning
	text bool
}

// plant builds the tree of several tables. The tree is never changed after
// that. An element of a top-level array is taken like a document by itself.
func plant(tables ...[]field) *node {
	root := &node{}
	root.elem = root
	for _, table := range tables {
		for _, f := range table {
			n := root
			for step := range strings.SplitSeq(f.path, ".") {
				name, inArray := strings.CutSuffix(step, "[]")
				n = n.key(name)
				if inArray {
					if n.elem == nil {
						n.elem = &node{}
					}
					n = n.elem
				}
			}
			n.mean, n.text = f.mean, f.text
		}
	}
	return root
}

func (n *node) key(name string) *node {
	if n.keys == nil {
		n.keys = make(map[string]*node)
	}
	if n.keys[name] == nil {
		n.keys[name] = &node{}
	}
	return n.keys[name]
}
