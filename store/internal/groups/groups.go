// Package groups is the format of objects of many arrays, which docs/store-protocol.md describes: what an object's
// metadata say of a group, and the directory behind its arrays. It knows neither clients nor memory.
package groups

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"hamr/arrayiface"
)

const (
	// Alignment is what the offset of each array is a multiple of, in bytes.
	Alignment = 256
	key       = "hamr.group"
	version   = 1
)

// ErrNoGroup says that an object's metadata are not those of a group.
var ErrNoGroup = errors.New("it is no group")

// Facts are what an object's metadata say of a group.
type Facts struct {
	Version int `json:"version"`
	Arrays  int `json:"arrays"`
	At      int `json:"at"` // where the directory begins
	Bytes   int `json:"bytes"`
}

// Metadata are the object's: the facts, and the user's own, which are valid JSON or nothing.
func (f Facts) Metadata(users []byte) ([]byte, error) {
	f.Version = version
	whole := map[string]any{key: f}
	if len(users) > 0 {
		whole["metadata"] = json.RawMessage(users)
	}
	return json.Marshal(whole)
}

// ReadFacts reads an object's metadata: the facts, and the user's own.
func ReadFacts(metadata []byte) (f Facts, users []byte, err error) {
	var whole, known map[string]json.RawMessage
	if json.Unmarshal(metadata, &whole) != nil || json.Unmarshal(whole[key], &known) != nil || len(known) != 4 {
		return f, nil, ErrNoGroup
	}
	users, has := whole["metadata"]
	if has != (len(whole) == 2) || len(whole) > 2 {
		return f, nil, ErrNoGroup
	}
	for name, to := range map[string]*int{"version": &f.Version, "arrays": &f.Arrays, "at": &f.At, "bytes": &f.Bytes} {
		number := json.Number(known[name])
		n, err := number.Int64()
		if err != nil {
			return f, nil, ErrNoGroup
		}
		*to = int(n)
	}
	if f.Version != version {
		return f, nil, fmt.Errorf("its version is %d", f.Version)
	}
	return f, users, nil
}

// Row is where an array lies: its elements are in C order.
type Row struct {
	Offset int // bytes
	Layout arrayiface.Layout
}

// Directory is what lies behind a group's arrays.
type Directory struct {
	Tree     *Node
	Rows     []Row
	Metadata map[string]json.RawMessage // of arrays, by path
}

// Flat is the directory of a dictionary whose keys are paths, one for each row.
func Flat(paths []string, rows []Row, metadata map[string]json.RawMessage) ([]byte, error) {
	var tree bytes.Buffer
	for i, path := range paths {
		name, err := json.Marshal(path)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&tree, ",%s:%d", name, i)
	}
	tree.WriteByte('}')
	text := tree.Bytes()
	if len(paths) > 0 {
		text[0] = '{'
	} else {
		text = []byte("{}")
	}
	places := map[arrayiface.ElementType]int{}
	types := []string{}
	table := make([][]int, len(rows))
	for i, row := range rows {
		place, known := places[row.Layout.Type]
		if !known {
			place = len(types)
			places[row.Layout.Type] = place
			types = append(types, row.Layout.Type.String())
		}
		table[i] = append([]int{row.Offset, place}, row.Layout.Shape...)
	}
	return json.Marshal(struct {
		Version  int                        `json:"version"`
		Tree     json.RawMessage            `json:"tree"`
		Types    []string                   `json:"types"`
		Arrays   [][]int                    `json:"arrays"`
		Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	}{version, text, types, table, metadata})
}
