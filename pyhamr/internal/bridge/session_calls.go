package bridge

import (
	"context"
	"errors"

	"hamr/store"
)

// onClient calls f with a session.
func onClient[T any](client uint64, f func(ctx context.Context, c *store.Client) (T, error)) (result T, err error) {
	defer Guard(&err)
	c, err := storeClients.get(client)
	if err != nil {
		return result, err
	}
	return f(context.Background(), c)
}

// done is onClient where there is no result.
func done(client uint64, f func(ctx context.Context, c *store.Client) error) error {
	_, err := onClient(client, func(ctx context.Context, c *store.Client) (struct{}, error) {
		return struct{}{}, f(ctx, c)
	})
	return err
}

// DeleteObject deletes an object.
func DeleteObject(client uint64, id StoreID, force bool) error {
	return done(client, func(ctx context.Context, c *store.Client) error { return c.Delete(ctx, id, force) })
}

// PutName gives an object a name.
func PutName(client uint64, name string, id StoreID, replace bool) error {
	return done(client, func(ctx context.Context, c *store.Client) error { return c.PutName(ctx, name, id, replace) })
}

// DropName takes one away.
func DropName(client uint64, name string) error {
	return done(client, func(ctx context.Context, c *store.Client) error { return c.DropName(ctx, name) })
}

// PinObject keeps an object from being evicted or spilled, or no longer.
func PinObject(client uint64, id StoreID, on bool) error {
	return done(client, func(ctx context.Context, c *store.Client) error {
		if on {
			return c.Pin(ctx, id)
		}
		return c.Unpin(ctx, id)
	})
}

// SetEvictable lets an object be deleted when room is needed, or no longer.
func SetEvictable(client uint64, id StoreID, on bool) error {
	return done(client, func(ctx context.Context, c *store.Client) error { return c.SetEvictable(ctx, id, on) })
}

// SetMetadata replaces the metadata of an object that this client has made and not sealed.
func SetMetadata(client uint64, id StoreID, metadata []byte) error {
	return done(client, func(ctx context.Context, c *store.Client) error { return c.SetMetadata(ctx, id, metadata) })
}

// GetName returns the object that has a name; with milliseconds it is waited for.
func GetName(client uint64, name string, milliseconds int64) (StoreID, error) {
	return onClient(client, func(ctx context.Context, c *store.Client) (StoreID, error) {
		return getNameWithin(ctx, c, name, atMost(milliseconds))
	})
}

// ObjectExists reports whether there is an object, and whether it is sealed.
func ObjectExists(client uint64, id StoreID) (there, sealed bool, err error) {
	err = done(client, func(ctx context.Context, c *store.Client) (err error) {
		there, sealed, err = c.Exists(ctx, id)
		return err
	})
	return there, sealed, err
}

// DescribeObject returns what is known of an object.
func DescribeObject(client uint64, id StoreID) (store.Info, error) {
	return onClient(client, func(ctx context.Context, c *store.Client) (store.Info, error) { return c.Describe(ctx, id) })
}

// ListObjects returns most objects at most, and where to go on.
func ListObjects(client uint64, prefix string, named, unsealed bool, after uint64, most int) (ids []StoreID, next uint64, err error) {
	err = done(client, func(ctx context.Context, c *store.Client) error {
		list, at, err := c.List(ctx, store.ListOptions{Unsealed: unsealed, Named: named, Prefix: prefix, After: after, Most: most})
		for _, info := range list {
			ids = append(ids, info.ID)
		}
		next = at
		return err
	})
	return ids, next, err
}

// WaitForObjects returns those that are sealed, when count of them are or the time is over.
func WaitForObjects(client uint64, ids []StoreID, count int, milliseconds int64) ([]StoreID, error) {
	return onClient(client, func(ctx context.Context, c *store.Client) ([]StoreID, error) {
		limited, end := soon(milliseconds)
		defer end()
		if milliseconds == 0 {
			return c.Wait(ctx, ids, 0)
		}
		ready, err := c.Wait(limited, ids, count)
		if !errors.Is(err, context.DeadlineExceeded) {
			return ready, err
		}
		if ready == nil {
			return c.Wait(ctx, ids, 0)
		}
		return ready, nil
	})
}

// StoreStatistics returns a server's figures.
func StoreStatistics(client uint64) (store.Statistics, error) {
	return onClient(client, func(ctx context.Context, c *store.Client) (store.Statistics, error) { return c.Statistics(ctx) })
}
