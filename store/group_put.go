package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/groups"
	"hamr/store/internal/protocol"
)

// GroupArray is an array of a new group.
type GroupArray struct {
	Path     string // UTF-8, which no other array of the group has
	Array    *gobuffer.Array
	Metadata []byte // JSON, or nothing
}

// NewGroup is what PutGroup makes: an object with a name unless that is empty. The type, shape and memory of its own
// are the group's, whatever Type, Shape and Separate are.
type NewGroup struct {
	Arrays []GroupArray
	Description
	Name string
}

// PutGroup makes one object of many arrays, a group, which are copied once, seals it and gives it its name. In other
// languages it is a dictionary whose keys are the paths. Arrays of the same memory are stored once.
func (c *Client) PutGroup(ctx context.Context, what NewGroup) (ID, error) {
	if err := c.isNone(); err != nil {
		return ID{}, err
	}
	if what.Name != "" {
		if err := checkName(what.Name); err != nil {
			return ID{}, err
		}
	}
	plan, err := planOf(what.Arrays)
	if err != nil {
		return ID{}, err
	}
	if err := protocol.CheckMetadata(what.Metadata); err != nil {
		return ID{}, err
	}
	d := what.Description
	d.Metadata = plan.facts.Metadata(what.Metadata)
	d.Type, d.Shape, d.Separate = arrayiface.Uint8, []int{plan.facts.At + plan.facts.Bytes}, true
	p := &putting{client: c, name: what.Name, file: -1, group: plan, builder: &Builder{client: c}}
	if err := p.request.of(c, d); err != nil {
		return ID{}, err
	}
	if err := c.putAll(ctx, []*putting{p}); err != nil {
		return ID{}, withoutItem(err)
	}
	return p.id(), nil
}

// groupPlan is where the arrays of a new group go, and its directory.
type groupPlan struct {
	facts     groups.Facts
	directory []byte
	sources   []*gobuffer.Array // that are copied
	rows      []groups.Row      // of these
}

func planOf(arrays []GroupArray) (*groupPlan, error) {
	p := &groupPlan{}
	paths := make([]string, len(arrays))
	rows := make([]groups.Row, len(arrays))
	metadata := make([][]byte, len(arrays))
	known := make(map[string]struct{}, len(arrays))
	places := make(map[placed]int, len(arrays))
	end := 0
	for i, a := range arrays {
		_, twice := known[a.Path]
		known[a.Path] = struct{}{}
		if twice || !utf8.ValidString(a.Path) {
			at, value := fmt.Sprintf("arrays[%d].Path", i), fmt.Sprintf("%.80q", a.Path)
			return nil, &ArgumentError{Argument: at, Value: value, Accepted: "paths in UTF-8 that differ"}
		}
		layout, err := layoutOf(a.Array)
		inOrder := arrayiface.Layout{}
		if err == nil {
			inOrder, err = arrayiface.NewLayout(layout.Type, layout.Shape, nil)
		}
		if err == nil {
			err = protocol.CheckMetadata(a.Metadata)
		}
		if err != nil {
			return nil, fmt.Errorf("arrays[%.80q]: %w", a.Path, err)
		}
		paths[i], metadata[i], rows[i] = a.Path, a.Metadata, groups.Row{Offset: end, Layout: inOrder}
		if layout.NBytes() == 0 {
			continue
		}
		at := placeOf(a.Array, layout)
		if offset, has := places[at]; has {
			rows[i].Offset = offset
			continue
		}
		places[at] = end
		p.sources, p.rows = append(p.sources, a.Array), append(p.rows, rows[i])
		room := int(protocol.RoundUp(int64(layout.NBytes()), groups.Alignment))
		if room > math.MaxInt-end {
			value := fmt.Sprintf("%d bytes and more", end)
			return nil, &ArgumentError{Argument: "arrays", Value: value, Accepted: "what fits the address space"}
		}
		end += room
	}
	p.directory = groups.Flat(paths, rows, metadata)
	p.facts = groups.Facts{Arrays: len(rows), At: end, Bytes: len(p.directory)}
	return p, nil
}

// placed is the memory of an array: two with the same have the same bytes in C order.
type placed struct {
	address backends.Address
	device  int
	bytes   int
	strided string // what tells those apart whose elements are not in C order
}

func placeOf(a *gobuffer.Array, layout arrayiface.Layout) placed {
	at := placed{address: a.Address(), device: a.Owner(), bytes: layout.NBytes()}
	if !layout.ContiguousC() {
		at.strided = fmt.Sprint(layout.Type, layout.Shape, layout.Strides)
	}
	return at
}

// write copies the arrays and the directory to the elements of the object.
func (p *groupPlan) write(whole *gobuffer.Array) (err error) {
	to := make([]*gobuffer.Array, len(p.rows))
	for i, row := range p.rows {
		to[i] = viewOf(whole, row)
	}
	defer func() {
		for _, view := range to {
			err = errors.Join(err, view.Close())
		}
	}()
	if err := gobuffer.CopyMany(to, p.sources); err != nil {
		return err
	}
	return copyDirectory(whole, p.facts.At, p.directory, (*gobuffer.Buffer[uint8]).Put)
}
