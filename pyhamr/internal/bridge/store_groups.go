package bridge

import (
	"context"
	"fmt"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store"
)

// GetGroup describes all bytes of a group at result, and hands it over. The token is of the lease.
func GetGroup(a Asking, id StoreID, only []string, milliseconds int64, result *Descriptor, token *uint64,
	found func(*store.Group)) error {
	ask := a.query
	if milliseconds != 0 {
		ask = a.Change
	}
	return ask(func(ctx context.Context, c *store.Client) error {
		g, err := waitingFor(ctx, atMost(milliseconds), func(ctx context.Context, wait bool) (*store.Group, error) {
			return c.GetGroup(ctx, id, store.GroupOptions{Only: only, Wait: wait})
		})
		if err != nil {
			return err
		}
		result.Store(g.Object().Array(), nil)
		*token = storeObjects.keep(&storeObject{object: g.Object(), group: g})
		found(g)
		return nil
	})
}

// PutGroup makes a group of arrays: on the device of any of them, if its memory can be shared, else on the host.
func PutGroup(a Asking, arrays []*Descriptor, paths, arrayMetadata []string, flags uint32, metadata []byte,
	name string, id *StoreID) (err error) {
	defer Guard(&err)
	what := store.NewGroup{Description: described(flags, metadata), Name: name}
	what.Arrays = make([]store.GroupArray, len(arrays))
	if what.Allocator, what.Device, err = placeOfGroup(arrays); err != nil {
		return err
	}
	return a.putting(arrays, func(ctx context.Context, c *store.Client, sources []*gobuffer.Array) error {
		for i, source := range sources {
			what.Arrays[i] = store.GroupArray{Path: paths[i], Array: source, Metadata: []byte(arrayMetadata[i])}
		}
		made, err := c.PutGroup(ctx, what)
		if err == nil {
			*id = made
		}
		return err
	})
}

func placeOfGroup(arrays []*Descriptor) (backends.Allocator, int, error) {
	place, device := backends.Shared, backends.HostDevice
	for _, d := range arrays {
		at, on := StoreAllocator(backends.Allocator(d.Allocator), int(d.Device)), int(d.Device)
		if at == backends.Shared || at == place && on == device {
			continue
		}
		if place != backends.Shared {
			return 0, 0, &store.ArgumentError{Argument: "items", Value: fmt.Sprintf("on the devices %d and %d", device, on),
				Accepted: "arrays of one device and of the host"}
		}
		place, device = at, on
	}
	return place, device, nil
}
