package groups

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"hamr/arrayiface"
)

// Read reads a directory that any client may have written, of a group of so many bytes.
func Read(text []byte, size int) (*Directory, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("its directory is not UTF-8")
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("its directory: %w", err)
	}
	var is int
	if err := json.Unmarshal(whole["version"], &is); err != nil || is != version {
		return nil, fmt.Errorf("its version is %.40s", whole["version"])
	}
	rows, err := readRows(whole["arrays"], whole["types"], size)
	if err != nil {
		return nil, err
	}
	d := &Directory{Rows: rows}
	if d.Tree, err = readTree(whole["tree"], len(rows)); err != nil {
		return nil, err
	}
	if of, has := whole["metadata"]; has {
		if err := json.Unmarshal(of, &d.Metadata); err != nil || d.Metadata == nil {
			return nil, errors.New("its metadata of arrays are no dictionary")
		}
	}
	return d, nil
}

func readRows(arrays, types json.RawMessage, size int) ([]Row, error) {
	var names []string
	if err := json.Unmarshal(types, &names); err != nil {
		return nil, fmt.Errorf("its types: %w", err)
	}
	elements := make([]arrayiface.ElementType, len(names))
	for i, name := range names {
		t, err := arrayiface.ParseName(name)
		if err != nil {
			return nil, fmt.Errorf("its types: %w", err)
		}
		elements[i] = t
	}
	var table [][]int
	if bytes.IndexByte(arrays, 'n') >= 0 { // a null, of which Go's reader makes 0
		return nil, errors.New("its arrays have what is no number")
	}
	if err := json.Unmarshal(arrays, &table); err != nil {
		return nil, fmt.Errorf("its arrays: %w", err)
	}
	rows := make([]Row, len(table))
	for i, numbers := range table {
		if len(numbers) < 2 || numbers[1] < 0 || numbers[1] >= len(elements) {
			return nil, fmt.Errorf("its array %d has no type", i)
		}
		layout, err := arrayiface.NewLayout(elements[numbers[1]], numbers[2:], nil)
		if err != nil {
			return nil, fmt.Errorf("its array %d: %w", i, err)
		}
		at := numbers[0]
		if at < 0 || at > size || layout.NBytes() > size-at || at%layout.Type.Size() != 0 {
			return nil, fmt.Errorf("its array %d of %d bytes begins at byte %d of %d", i, layout.NBytes(), at, size)
		}
		rows[i] = Row{at, layout}
	}
	return rows, nil
}
