// Package groups is the format of objects of many arrays, which docs/store-protocol.md describes: what an object's
// metadata say of a group, and the directory behind its arrays. It knows neither clients nor memory.
package groups

import (
	"errors"
	"fmt"
	"strconv"

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
	Version, Arrays int
	At, Bytes       int // where the directory begins, and how long it is
}

// Metadata are the object's: the facts, and the user's own, which are valid JSON or nothing.
func (f Facts) Metadata(users []byte) []byte {
	text := fmt.Appendf(nil, `{"%s":{"version":%d,"arrays":%d,"at":%d,"bytes":%d}`, key, version, f.Arrays, f.At, f.Bytes)
	if len(users) > 0 {
		text = fmt.Appendf(text, `,"metadata":%s`, users)
	}
	return append(text, '}')
}

// ReadFacts reads an object's metadata: the facts, and the user's own.
func ReadFacts(metadata []byte) (f Facts, users []byte, err error) {
	c, err := cursorOf(metadata)
	if err != nil {
		return f, nil, ErrNoGroup
	}
	whole := c.fields()
	known := (&cursor{text: whole[key]}).fields()
	own, has := whole["metadata"]
	if has {
		users = []byte(own)
	}
	if len(known) != 4 || has != (len(whole) == 2) || len(whole) > 2 {
		return f, nil, ErrNoGroup
	}
	for name, to := range map[string]*int{"version": &f.Version, "arrays": &f.Arrays, "at": &f.At, "bytes": &f.Bytes} {
		if *to, err = strconv.Atoi(known[name]); err != nil {
			return f, nil, ErrNoGroup
		}
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
	Metadata map[string]string // of arrays, by path: JSON
}

// Flat is the directory of a dictionary whose keys are paths, one for each row. Metadata, of as many, are valid JSON or
// nothing.
func Flat(paths []string, rows []Row, metadata [][]byte) []byte {
	tree, told := []byte(`"tree":{`), []byte(`"metadata":{`)
	types, arrays := []byte(`"types":[`), []byte(`"arrays":[`)
	comma := func(list []byte) []byte {
		if last := list[len(list)-1]; last != '{' && last != '[' {
			list = append(list, ',')
		}
		return list
	}
	places := map[arrayiface.ElementType]int{}
	for i, row := range rows {
		tree = fmt.Appendf(quote(comma(tree), paths[i]), ":%d", i)
		place, known := places[row.Layout.Type]
		if !known {
			place = len(places)
			places[row.Layout.Type] = place
			types = quote(comma(types), row.Layout.Type.String())
		}
		arrays = fmt.Appendf(comma(arrays), "[%d,%d", row.Offset, place)
		for _, n := range row.Layout.Shape {
			arrays = fmt.Appendf(arrays, ",%d", n)
		}
		arrays = append(arrays, ']')
		if len(metadata[i]) > 0 {
			told = fmt.Appendf(quote(comma(told), paths[i]), ":%s", metadata[i])
		}
	}
	return fmt.Appendf(nil, `{"version":%d,%s},%s],%s],%s}}`, version, tree, types, arrays, told)
}
