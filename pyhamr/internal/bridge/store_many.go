package bridge

import (
	"context"
	"errors"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store"
)

// GetObjects is GetObject of many objects, or of none after an error. Those that have a name are of that, and their ids
// are set. All are sealed.
func GetObjects(a Asking, names []string, ids []StoreID, results []*Descriptor, tokens []uint64) error {
	return a.Change(func(ctx context.Context, c *store.Client) error {
		if err := findNamed(ctx, c, names, ids); err != nil {
			return err
		}
		objects, err := c.GetMany(ctx, ids)
		if err != nil {
			return err
		}
		for i, o := range objects {
			if a.How&lentFlag != 0 {
				results[i].lend(o.Array(), true)
			} else {
				results[i].Store(o.Array(), nil)
			}
			tokens[i] = storeObjects.keep(&storeObject{object: o})
		}
		return nil
	})
}

// findNamed sets the ids of those that have a name.
func findNamed(ctx context.Context, c *store.Client, names []string, ids []StoreID) error {
	var wanted []string
	var positions []int
	for i, name := range names {
		if name != "" {
			wanted, positions = append(wanted, name), append(positions, i)
		}
	}
	found, err := c.GetNames(ctx, wanted)
	if item := (*store.ItemError)(nil); errors.As(err, &item) {
		item.Index = positions[item.Index]
	}
	for i, id := range found {
		ids[positions[i]] = id
	}
	return err
}

// PutObjects is PutObject of many arrays, or of none after an error, each of which gets a name where there are names.
func PutObjects(a Asking, arrays []*Descriptor, flags uint32, metadata []byte, allocator backends.Allocator, device int,
	names []string, ids []StoreID) (err error) {
	defer Guard(&err)
	list := make([]store.NewObject, len(arrays))
	for i, d := range arrays {
		described := Creation{Of: d, Flags: flags, Metadata: metadata}.description()
		if allocator == backends.None {
			described.Allocator = StoreAllocator(described.Allocator, described.Device)
		} else if described.Allocator, described.Device, err = placeOfObject(allocator, device); err != nil {
			return err
		}
		list[i].Description = described
		if names != nil {
			list[i].Name = names[i]
		}
	}
	return a.putting(arrays, func(ctx context.Context, c *store.Client, sources []*gobuffer.Array) error {
		for i, source := range sources {
			list[i].Array = source
		}
		made, err := c.PutMany(ctx, list)
		copy(ids, made)
		return err
	})
}

// putting calls put with the arrays that are described.
func (a Asking) putting(arrays []*Descriptor,
	put func(ctx context.Context, c *store.Client, sources []*gobuffer.Array) error) error {
	c, err := storeClients.get(a.Session)
	if err != nil {
		return err
	}
	return patiently(a.How, func(ctx context.Context, stop *backends.Stop) (err error) {
		defer Guard(&err)
		defer Calls.Leave(Calls.Enter())
		sources := make([]*gobuffer.Array, 0, len(arrays))
		defer func() {
			for _, source := range sources {
				source.Close()
			}
		}()
		for i, d := range arrays {
			source, err := d.Array()
			if err != nil {
				return &store.ItemError{Index: i, Err: err}
			}
			sources = append(sources, source.Until(stop))
		}
		return put(ctx, c, sources)
	})
}

// DeleteObjects deletes many objects or, after an error, none.
func DeleteObjects(a Asking, ids []StoreID, force bool) error {
	return a.Change(func(ctx context.Context, c *store.Client) error { return c.DeleteMany(ctx, ids, force) })
}
