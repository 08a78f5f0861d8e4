package groups

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// mostNested is how many dictionaries, lists and tuples may be in each other.
const mostNested = 100

// mostOfPaths is how many bytes the paths of a group may have together: keys near the root are in many paths, so that a
// small directory may tell of more than there is memory for.
const mostOfPaths = 256 << 20

// Node is a structure, an array, or another value among the arrays.
type Node struct {
	Array int // its number; -1 of all else
	Value any // a text, a truth, nil, a json.Number, or a float64 that JSON does not have
	parts []*Node
	keys  []string       // of a dictionary, one for each part
	at    map[string]int // where the key is
	list  bool           // a list or a tuple
	Left  bool           // nobody asked for it
}

func (n *Node) isStructure() bool { return n.list || n.at != nil }

type reader struct {
	*json.Decoder
	arrays int
}

func readTree(text json.RawMessage, arrays int) (*Node, error) {
	r := reader{json.NewDecoder(bytes.NewReader(text)), arrays}
	r.UseNumber()
	root, err := r.node(0)
	if err != nil {
		return nil, fmt.Errorf("its structure: %w", err)
	}
	if !root.isStructure() {
		return nil, errors.New("it has no structure")
	}
	return root, nil
}

func (r reader) node(depth int) (*Node, error) {
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch is := token.(type) {
	case json.Number:
		n, err := strconv.Atoi(string(is))
		if err != nil || n < 0 || n >= r.arrays {
			return nil, fmt.Errorf("there is no array %.40s of %d", is, r.arrays)
		}
		return &Node{Array: n}, nil
	case json.Delim:
		if depth >= mostNested {
			return nil, fmt.Errorf("it is nested more than %d levels deep", mostNested)
		}
		if is == '{' {
			return r.dictionary(depth)
		}
		return r.several(depth)
	default:
		return &Node{Array: -1, Value: token}, nil
	}
}

func (r reader) dictionary(depth int) (*Node, error) {
	made := &Node{Array: -1, at: map[string]int{}}
	for r.More() {
		name, err := r.Token()
		if err != nil {
			return nil, err
		}
		part, err := r.node(depth + 1)
		if err != nil {
			return nil, err
		}
		text, _ := name.(string)
		if i, twice := made.at[text]; twice { // the last one counts, as for Python
			made.parts[i] = part
			continue
		}
		made.at[text] = len(made.parts)
		made.keys, made.parts = append(made.keys, text), append(made.parts, part)
	}
	_, err := r.Token()
	return made, err
}

// several reads what an array of JSON is: a list, a tuple or a number.
func (r reader) several(depth int) (*Node, error) {
	kind, err := r.Token()
	if err != nil {
		return nil, err
	}
	made := &Node{Array: -1}
	switch kind {
	case "list", "tuple":
		made.list = true
		for r.More() {
			part, err := r.node(depth + 1)
			if err != nil {
				return nil, err
			}
			made.parts = append(made.parts, part)
		}
	case "value", "float":
		if made.Value, err = r.number(kind); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("there is no kind %.40q", fmt.Sprint(kind))
	}
	if r.More() {
		return nil, fmt.Errorf("there is more in %q than a number", kind)
	}
	_, err = r.Token()
	return made, err
}

func (r reader) number(kind json.Token) (any, error) {
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	if n, is := token.(json.Number); is && kind == "value" {
		return n, nil
	}
	if text, is := token.(string); is && kind == "float" {
		return strconv.ParseFloat(text, 64)
	}
	return nil, fmt.Errorf("%.40q is no number", fmt.Sprint(token))
}

// Leaf is an array or another value, and its path.
type Leaf struct {
	Path string
	*Node
}

// Leaves returns what is asked for, in order: all of it where only is nil. It marks the rest as left.
func (d *Directory) Leaves(only *Wanted) ([]Leaf, error) {
	w := walk{only: only}
	if !w.part(d.Tree, "", true) {
		return nil, fmt.Errorf("its paths have more than %d bytes", mostOfPaths)
	}
	return w.leaves, nil
}

type walk struct {
	only   *Wanted
	leaves []Leaf
	bytes  int
}

func (w *walk) part(n *Node, path string, isRoot bool) bool {
	wanted := w.only == nil || !isRoot && w.only.has(path)
	if !n.isStructure() {
		if n.Left = !wanted; wanted {
			w.leaves = append(w.leaves, Leaf{path, n})
		}
		return true
	}
	for i, part := range n.parts {
		name := ""
		if n.list {
			name = strconv.Itoa(i)
		} else {
			name = n.keys[i]
		}
		if w.bytes += len(path) + 1 + len(name); w.bytes > mostOfPaths {
			return false
		}
		if !isRoot {
			name = path + "." + name
		}
		if !w.part(part, name, false) {
			return false
		}
	}
	return true
}

// Find returns what an array or another value of a path is, nil of none. Keys may have dots themselves: a whole key
// comes before a shorter one.
func (n *Node) Find(path string) *Node {
	if !n.isStructure() {
		return nil
	}
	if n.list {
		first, rest, dot := strings.Cut(path, ".")
		i, err := strconv.ParseUint(first, 10, 32)
		if err != nil || i >= uint64(len(n.parts)) {
			return nil
		}
		return n.parts[i].under(rest, dot)
	}
	if i, has := n.at[path]; has {
		if found := n.parts[i].under("", false); found != nil {
			return found
		}
	}
	for end := range len(path) {
		if path[end] != '.' {
			continue
		}
		if i, has := n.at[path[:end]]; has {
			if found := n.parts[i].under(path[end+1:], true); found != nil {
				return found
			}
		}
	}
	return nil
}

// under returns what lies under a path in a part, or the part itself.
func (n *Node) under(path string, further bool) *Node {
	switch {
	case further:
		return n.Find(path)
	case n.isStructure() || n.Left:
		return nil
	}
	return n
}

// Wanted is which paths are asked for: some, and what lies under them.
type Wanted struct {
	paths   map[string]bool // and whether nothing has had it so far
	lengths map[int]struct{}
}

// NewWanted is what lies at some paths, or under them.
func NewWanted(only []string) *Wanted {
	w := &Wanted{map[string]bool{}, map[int]struct{}{}}
	for _, path := range only {
		w.paths[path] = true
		w.lengths[len(path)] = struct{}{}
	}
	return w
}

func (w *Wanted) has(path string) (found bool) {
	for n := range w.lengths {
		if n > len(path) || n < len(path) && path[n] != '.' {
			continue
		}
		if _, asked := w.paths[path[:n]]; asked {
			w.paths[path[:n]] = false
			found = true
		}
	}
	return found
}

// Missing returns a path that nothing has had.
func (w *Wanted) Missing() (path string, is bool) {
	if w == nil {
		return "", false
	}
	for p, missing := range w.paths {
		if missing && (!is || p < path) {
			path, is = p, true
		}
	}
	return path, is
}
