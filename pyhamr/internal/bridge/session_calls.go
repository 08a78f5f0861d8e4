package bridge

import (
	"context"
	"errors"
	"io"
	"time"

	"hamr/backends"
	"hamr/store"
)

// DeleteObject deletes an object.
func DeleteObject(a Asking, id StoreID, force bool) error {
	return a.Change(func(ctx context.Context, c *store.Client) error { return c.Delete(ctx, id, force) })
}

// MarkObject lets an object be deleted when room is needed, or keeps it from being evicted or spilled; or no longer.
func MarkObject(a Asking, id StoreID, flag uint32, on bool) error {
	return a.Change(func(ctx context.Context, c *store.Client) error {
		switch {
		case flag == storeEvictable:
			return c.SetEvictable(ctx, id, on)
		case on:
			return c.Pin(ctx, id)
		}
		return c.Unpin(ctx, id)
	})
}

// SetMetadata replaces the metadata of an object that this client has made and not sealed.
func SetMetadata(a Asking, id StoreID, metadata string) error {
	return a.Change(func(ctx context.Context, c *store.Client) error { return c.SetMetadata(ctx, id, []byte(metadata)) })
}

// GetName sets the object that has a name; with milliseconds it is waited for.
func GetName(a Asking, name string, milliseconds int64, id *StoreID) error {
	return a.Change(func(ctx context.Context, c *store.Client) error {
		found, err := waitingFor(ctx, atMost(milliseconds), func(ctx context.Context, wait bool) (store.ID, error) {
			return c.GetName(ctx, name, wait)
		})
		if err == nil {
			*id = found
		}
		return err
	})
}

// ObjectExists sets whether there is an object, and whether it is sealed.
func ObjectExists(a Asking, id StoreID, there, sealed *int32) error {
	return a.query(func(ctx context.Context, c *store.Client) error {
		is, done, err := c.Exists(ctx, id)
		if err == nil {
			*there, *sealed = bit(is), bit(done)
		}
		return err
	})
}

// DescribeObject gives out what is known of an object, as a list of one.
func DescribeObject(a Asking, id StoreID, give func(list []store.Info, next uint64)) error {
	return a.query(func(ctx context.Context, c *store.Client) error {
		info, err := c.Describe(ctx, id)
		if err == nil {
			give([]store.Info{info}, 0)
		}
		return err
	})
}

// Which of HAMR_STORE_LIST_UNSEALED … are listed.
const (
	listUnsealed = 1 << iota
	listNamed
)

// ListObjects gives out most objects at most, and where to go on.
func ListObjects(a Asking, which uint32, prefix string, after uint64, most int,
	give func(list []store.Info, next uint64)) error {
	o := store.ListOptions{
		Unsealed: which&listUnsealed != 0, Named: which&listNamed != 0, Prefix: prefix, After: after, Most: most,
	}
	return a.query(func(ctx context.Context, c *store.Client) error {
		list, next, err := c.List(ctx, o)
		if err == nil {
			give(list, next)
		}
		return err
	})
}

// ObjectFlags is what describe tells: HAMR_STORE_EVICTABLE ….
func ObjectFlags(info store.Info) (flags int) {
	return storeEvictable*int(bit(info.Evictable)) | storePinned*int(bit(info.Pinned)) |
		storeIsSealed*int(bit(info.Sealed))
}

// ProblemOf is why an object's metadata, which a server of another version may have taken, cannot be read; or "".
func ProblemOf(info store.Info) string {
	if err := store.CheckMetadata(info.Metadata); err != nil {
		return err.Error()
	}
	return ""
}

// WaitForObjects gives out those that are sealed, when count of them are or the time is over.
func WaitForObjects(a Asking, ids []StoreID, count int, milliseconds int64, give func([]StoreID)) error {
	return a.Change(func(ctx context.Context, c *store.Client) error {
		ready, err := waitFor(ctx, c, ids, count, milliseconds)
		if err == nil {
			give(ready)
		}
		return err
	})
}

func waitFor(ctx context.Context, c *store.Client, ids []StoreID, count int, milliseconds int64) ([]StoreID, error) {
	if milliseconds == 0 {
		return c.Wait(ctx, ids, 0)
	}
	limited, end := soon(ctx, milliseconds)
	defer end()
	ready, err := c.Wait(limited, ids, count)
	if !errors.Is(err, context.DeadlineExceeded) {
		return ready, err
	}
	if ready != nil {
		return ready, nil
	}
	last, end := within(ctx, storeAnswersWithin)
	defer end()
	if ready, err = c.Wait(last, ids, 0); errors.Is(err, context.DeadlineExceeded) {
		err = nil // the server stands still
	}
	return ready, err
}

// StoreStatistics gives out a server's figures.
func StoreStatistics(a Asking, give func(store.Statistics)) error {
	return a.query(func(ctx context.Context, c *store.Client) error {
		t, err := c.Statistics(ctx)
		if err == nil {
			give(t)
		}
		return err
	})
}

// WatchObjects begins to be told of what happens to objects.
func WatchObjects(a Asking, token *uint64) error {
	return a.Change(func(ctx context.Context, c *store.Client) error {
		w, err := c.Watch(ctx)
		if err == nil {
			*token = storeWatches.keep(w)
		}
		return err
	})
}

func watchOf[W io.Closer](token uint64) (w W, err error) {
	found, err := storeWatches.get(token)
	if err != nil {
		return w, err
	}
	w, ok := found.(W)
	if !ok {
		err = store.ErrClosed
	}
	return w, err
}

// NextEvents gives out the events since the last call, unless there is none within so many milliseconds.
func NextEvents(how uint32, token uint64, milliseconds int64, give func([]store.Event)) (err error) {
	defer Guard(&err)
	w, err := watchOf[*store.Watch](token)
	if err != nil {
		return err
	}
	return patiently(how, func(ctx context.Context, _ *backends.Stop) error {
		soon, end := within(ctx, max(atMost(milliseconds), 1))
		defer end()
		over := make(chan struct{})
		defer close(over)
		defer context.AfterFunc(ctx, func() {
			select {
			case <-over:
			case <-time.After(time.Second): // the server does not answer
				_ = w.Close()
			}
		})()
		list, err := w.Next(soon)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err == nil {
			give(list)
		}
		return err
	})
}

// EndEvents ends that.
func EndEvents(token uint64) {
	if w, err := storeWatches.take(token); err == nil {
		_ = w.Close()
	}
}
