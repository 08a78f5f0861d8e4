package bridge

import (
	"context"

	"hamr/backends"
	"hamr/store"
)

// WaitName sets the object that has a name, when it is another one than known.
func WaitName(a Asking, name string, known StoreID, milliseconds int64, id *StoreID) error {
	return a.Change(func(ctx context.Context, c *store.Client) error {
		found, err := waitingFor(ctx, atMost(milliseconds), func(ctx context.Context, wait bool) (store.ID, error) {
			if wait {
				return c.WaitName(ctx, name, known)
			}
			found, err := c.GetName(ctx, name, false)
			if err == nil && found == known {
				err = context.DeadlineExceeded
			}
			return found, err
		})
		if err == nil {
			*id = found
		}
		return err
	})
}

// WatchName begins to watch a name.
func WatchName(a Asking, name string, token *uint64) error {
	return a.Change(func(ctx context.Context, c *store.Client) error {
		w, err := c.WatchName(ctx, name)
		if err == nil {
			*token = storeWatches.keep(w)
		}
		return err
	})
}

// NextName sets the next object that a watch tells of.
func NextName(how uint32, token uint64, known StoreID, milliseconds int64, id *StoreID) (err error) {
	defer Guard(&err)
	w, err := watchOf[*store.NameWatch](token)
	if err != nil {
		return err
	}
	return patiently(how, func(ctx context.Context, _ *backends.Stop) error {
		soon, end := within(ctx, max(atMost(milliseconds), 1))
		defer end()
		found, err := w.Next(soon, known)
		if err == nil {
			*id = found
		}
		return err
	})
}

// NameDescriptor sets a descriptor that can be read from when NextName does not wait.
func NameDescriptor(token uint64, known StoreID, descriptor *int32) (err error) {
	defer Guard(&err)
	w, err := watchOf[*store.NameWatch](token)
	if err != nil {
		return err
	}
	found, err := w.Descriptor(known)
	*descriptor = int32(found)
	return err
}
