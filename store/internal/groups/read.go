package groups

import (
	"errors"
	"fmt"
	"strconv"

	"hamr/arrayiface"
)

// Read reads a directory that any client may have written, of a group of so many bytes.
func Read(text []byte, size int) (*Directory, error) {
	c, err := cursorOf(text)
	if err != nil {
		return nil, fmt.Errorf("its directory: %w", err)
	}
	whole := c.fields()
	if is := whole["version"]; is != strconv.Itoa(version) {
		return nil, fmt.Errorf("its version is %.40s", is)
	}
	d := &Directory{}
	if d.Rows, err = readRows(whole["arrays"], whole["types"], size); err != nil {
		return nil, err
	}
	if d.Tree, err = readTree(whole["tree"], len(d.Rows)); err != nil {
		return nil, err
	}
	if of, has := whole["metadata"]; has {
		if d.Metadata = (&cursor{text: of}).fields(); d.Metadata == nil {
			return nil, errors.New("its metadata of arrays are no dictionary")
		}
	}
	return d, nil
}

func readTypes(text string) (types []arrayiface.ElementType, err error) {
	c := &cursor{text: text}
	is, err := c.array(func(int) error {
		if c.next() != '"' {
			return errors.New("one is no text")
		}
		t, err := arrayiface.ParseName(unquote(c.quoted()))
		types = append(types, t)
		return err
	})
	if err == nil && !is {
		err = errors.New("they are no list")
	}
	if err != nil {
		return nil, fmt.Errorf("its types: %w", err)
	}
	return types, nil
}

func readRows(arrays, names string, size int) (rows []Row, err error) {
	types, err := readTypes(names)
	if err != nil {
		return nil, err
	}
	c := &cursor{text: arrays}
	is, err := c.array(func(i int) error {
		row, err := readRow(c, types, size)
		if err != nil {
			return fmt.Errorf("its array %d: %w", i, err)
		}
		rows = append(rows, row)
		return nil
	})
	if err == nil && !is {
		err = errors.New("its arrays are no list")
	}
	return rows, err
}

func readRow(c *cursor, types []arrayiface.ElementType, size int) (Row, error) {
	var numbers []int
	_, err := c.array(func(int) error {
		n, err := strconv.Atoi(c.value())
		if len(numbers) >= 2+arrayiface.MaxDimensions {
			err = errors.New("it has too many dimensions")
		}
		numbers = append(numbers, n)
		return err
	})
	if err != nil {
		return Row{}, err
	}
	if len(numbers) < 2 || numbers[1] < 0 || numbers[1] >= len(types) {
		return Row{}, errors.New("it has no type")
	}
	layout, err := arrayiface.NewLayout(types[numbers[1]], numbers[2:], nil)
	if err != nil {
		return Row{}, err
	}
	at := numbers[0]
	if at < 0 || at > size || layout.NBytes() > size-at || at%layout.Type.Size() != 0 {
		return Row{}, fmt.Errorf("its %d bytes begin at byte %d of %d", layout.NBytes(), at, size)
	}
	return Row{at, layout}, nil
}
