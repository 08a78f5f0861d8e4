package groups

import (
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
	Array int    // its number; -1 of all else
	JSON  string // of a value; ["float","inf"] of what JSON does not have
	Left  bool   // nobody asked for it
	parts []*Node
	keys  []string       // of a dictionary, one for each part
	at    map[string]int // where the key is
	list  bool           // a list or a tuple
}

func (n *Node) isStructure() bool { return n.list || n.at != nil }

func readTree(text string, arrays int) (*Node, error) {
	r := reader{&cursor{text: text}, arrays}
	root, err := r.node(0)
	if err != nil {
		return nil, fmt.Errorf("its structure: %w", err)
	}
	if !root.isStructure() {
		return nil, errors.New("it has no structure")
	}
	return root, nil
}

type reader struct {
	*cursor
	arrays int
}

func (r reader) node(depth int) (*Node, error) {
	made := &Node{Array: -1}
	switch next := r.next(); {
	case next == '{':
		return made, r.dictionary(made, depth)
	case next == '[':
		return made, r.several(made, depth)
	case next == '-' || '0' <= next && next <= '9':
		number := r.value()
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= r.arrays {
			return nil, fmt.Errorf("there is no array %.40s of %d", number, r.arrays)
		}
		made.Array = n
	default:
		made.JSON = r.value()
	}
	return made, nil
}

var errNested = fmt.Errorf("it is nested more than %d levels deep", mostNested)

func (r reader) dictionary(made *Node, depth int) error {
	if made.at = map[string]int{}; depth >= mostNested {
		return errNested
	}
	_, err := r.object(func(name string) error {
		part, err := r.node(depth + 1)
		if err != nil {
			return err
		}
		if i, twice := made.at[name]; twice { // the last one counts, as for Python
			made.parts[i] = part
			return nil
		}
		made.at[name] = len(made.parts)
		made.keys, made.parts = append(made.keys, name), append(made.parts, part)
		return nil
	})
	return err
}

// several reads what an array of JSON is: a list, a tuple or a number.
func (r reader) several(made *Node, depth int) error {
	start, kind := r.at, ""
	_, err := r.array(func(i int) error {
		switch {
		case i == 0 && r.next() == '"':
			kind = unquote(r.quoted())
			if made.list = kind == "list" || kind == "tuple"; made.list && depth >= mostNested {
				return errNested
			}
		case i == 0:
			r.value()
		case made.list:
			part, err := r.node(depth + 1)
			made.parts = append(made.parts, part)
			return err
		default:
			if made.JSON != "" || !isNumber(kind, r.cursor) {
				return fmt.Errorf("there is no number of the kind %.40s", kind)
			}
			made.JSON = r.value()
		}
		return nil
	})
	if err == nil && !made.list && made.JSON == "" {
		err = fmt.Errorf("there is no kind %.40q", kind)
	}
	if kind == "float" {
		made.JSON = r.text[start:r.at]
	}
	return err
}

// isNumber reports whether the next value is a number of a kind.
func isNumber(kind string, c *cursor) bool {
	next := c.next()
	if kind == "value" {
		return next == '-' || '0' <= next && next <= '9'
	}
	if kind != "float" || next != '"' {
		return false
	}
	at := *c
	_, err := strconv.ParseFloat(unquote(at.quoted()), 64)
	return err == nil
}

// Leaf is an array or another value, and its path.
type Leaf struct {
	Path string
	*Node
}

// Values is an object of what is no array, by path.
func Values(leaves []Leaf) []byte {
	text := []byte{'{'}
	for i, leaf := range leaves {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(quote(text, leaf.Path), ':'), leaf.JSON...)
	}
	return append(text, '}')
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
