package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/groups"
)

// Group is a lease of an object of many arrays, whichever language put it: views in place, for reading. The arrays are
// the Group's, and end with Release. Views of them, copies of the reference and handles keep the lease for longer.
//
// An array's path is the keys and positions that lead to it, with dots in between, as in "layers.0.weight". Keys may
// have dots themselves.
type Group struct {
	object    *Object
	directory *groups.Directory
	leaves    []groups.Leaf // arrays
	others    []groups.Leaf
	arrays    []*gobuffer.Array // by number; nil of those that nobody asked for
	metadata  []byte
}

// GroupOptions say which part of a group GetGroup returns, and whether it waits.
type GroupOptions struct {
	// Only are paths of what is wanted, or their beginnings up to a dot, as "layers.0". nil is all.
	Only []string
	// Wait is as in GetOptions.
	Wait bool
	// Private gives arrays to write to, as Object.Private does, with its errors.
	Private bool
}

// GetGroup returns a group by its id, mapped for reading unless it is private; nothing is copied but its directory. An
// object that is no group, and a path that nothing has, are an *ArgumentError; a directory that cannot be read is a
// *ProtocolError. All else is as in Get.
func (c *Client) GetGroup(ctx context.Context, id ID, o GroupOptions) (*Group, error) {
	object, err := c.Get(ctx, id, GetOptions{Wait: o.Wait})
	if err != nil {
		return nil, err
	}
	whole := object.Array()
	if o.Private {
		if whole, err = object.Private(); err != nil {
			return nil, errors.Join(err, object.Release())
		}
		defer whole.Close() // its views keep the memory
	}
	g, err := groupOf(object, whole, o.Only)
	if err != nil {
		return nil, errors.Join(err, object.Release())
	}
	return g, nil
}

func groupOf(object *Object, whole *gobuffer.Array, only []string) (*Group, error) {
	unreadable := func(err error) error {
		return &ProtocolError{Problem: fmt.Sprintf("object %s is a group that cannot be read: %v", object.ID(), err)}
	}
	facts, users, err := groups.ReadFacts(object.Info().Metadata)
	if errors.Is(err, groups.ErrNoGroup) {
		value, accepted := object.ID().String(), "a group; Get returns other objects"
		return nil, &ArgumentError{Argument: "id", Value: value, Accepted: accepted}
	}
	size := whole.Layout().NBytes()
	if err == nil && (facts.At < 0 || facts.Bytes < 0 || facts.At > size || facts.Bytes > size-facts.At) {
		err = fmt.Errorf("its directory of %d bytes begins at byte %d of %d", facts.Bytes, facts.At, size)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	text := make([]byte, facts.Bytes)
	if err := copyDirectory(whole, facts.At, text, (*gobuffer.Buffer[uint8]).Get); err != nil {
		return nil, err
	}
	g := &Group{object: object, metadata: users}
	if g.directory, err = groups.Read(text, size); err != nil {
		return nil, unreadable(err)
	}
	var wanted *groups.Wanted
	if only != nil {
		wanted = groups.NewWanted(only)
	}
	leaves, err := g.directory.Leaves(wanted)
	if err != nil {
		return nil, unreadable(err)
	}
	if path, is := wanted.Missing(); is {
		value, accepted := fmt.Sprintf("%.80q", path), "paths in the group, or their beginnings up to a dot"
		return nil, &ArgumentError{Argument: "only", Value: value, Accepted: accepted}
	}
	g.arrays = make([]*gobuffer.Array, len(g.directory.Rows))
	for _, leaf := range leaves {
		if leaf.Array < 0 {
			g.others = append(g.others, leaf)
			continue
		}
		g.leaves = append(g.leaves, leaf)
		if g.arrays[leaf.Array] == nil {
			g.arrays[leaf.Array] = viewOf(whole, g.directory.Rows[leaf.Array])
		}
	}
	return g, nil
}

// viewOf is a part of an object's elements, which has been checked to be that.
func viewOf(whole *gobuffer.Array, row groups.Row) *gobuffer.Array {
	at := whole.Address() + backends.Address(row.Offset)
	return gobuffer.View(whole.Memory().Retain(), at, row.Layout, row.Layout.Count(), whole.ReadOnly(), whole.Options())
}

// copyDirectory copies a directory to or from where it is in an object.
func copyDirectory(
	whole *gobuffer.Array, at int, text []byte, do func(b *gobuffer.Buffer[uint8], at int, text []byte) error,
) error {
	layout, err := arrayiface.NewLayout(arrayiface.Uint8, []int{len(text)}, nil)
	if err != nil {
		return err
	}
	b, err := gobuffer.Typed[uint8](viewOf(whole, groups.Row{Offset: at, Layout: layout}))
	if err != nil {
		return err
	}
	return errors.Join(do(b, 0, text), b.Close())
}

// Object returns the object, whose elements are all of the group's bytes. It is the Group's.
func (g *Group) Object() *Object {
	if g == nil {
		return nil
	}
	return g.object
}

// Len returns how many arrays there are.
func (g *Group) Len() int {
	if g == nil {
		return 0
	}
	return len(g.leaves)
}

// Paths returns the paths of the arrays, in order.
func (g *Group) Paths() []string {
	paths := make([]string, 0, g.Len())
	for path := range g.All() {
		paths = append(paths, path)
	}
	return paths
}

// All are the paths and the arrays, in order.
func (g *Group) All() iter.Seq2[string, *gobuffer.Array] {
	return func(yield func(string, *gobuffer.Array) bool) {
		for i := range g.Len() {
			if leaf := g.leaves[i]; !yield(leaf.Path, g.arrays[leaf.Array]) {
				return
			}
		}
	}
}

var errNoGroup = &ArgumentError{Argument: "group", Value: "nil or a zero value", Accepted: "what GetGroup returns"}

// Array returns the array of a path. The error is an *ArgumentError.
func (g *Group) Array(path string) (*gobuffer.Array, error) {
	if g == nil || g.object == nil {
		return nil, errNoGroup
	}
	if found := g.directory.Tree.Find(path); found != nil && found.Array >= 0 {
		return g.arrays[found.Array], nil
	}
	value := fmt.Sprintf("%.80q", path)
	return nil, &ArgumentError{Argument: "path", Value: value, Accepted: "the path of an array of the group"}
}

// Values returns what was put among the arrays, as JSON: an object, by path, of texts, numbers, true, false and null,
// and of ["float","inf"], "-inf" or "nan" for a number that JSON does not have.
func (g *Group) Values() []byte {
	if g == nil {
		return []byte("{}")
	}
	return groups.Values(g.others)
}

// Metadata returns the group's metadata as JSON; nil where there are none.
func (g *Group) Metadata() []byte {
	if g == nil {
		return nil
	}
	return g.metadata
}

// ArrayMetadata returns the metadata of the array of a path as JSON; nil where there are none.
func (g *Group) ArrayMetadata(path string) []byte {
	if g == nil || g.directory == nil {
		return nil
	}
	told, has := g.directory.Metadata[path]
	if !has {
		return nil
	}
	return []byte(told)
}

// Release ends the use of the group; the lease ends with the last view of its arrays. Releasing again is harmless.
func (g *Group) Release() error {
	if g == nil || g.object == nil {
		return errNoGroup
	}
	err := error(nil)
	for _, a := range g.arrays {
		if a != nil {
			err = errors.Join(err, a.Close())
		}
	}
	return errors.Join(err, g.object.Release())
}
