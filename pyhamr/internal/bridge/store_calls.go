package bridge

import (
	"context"
	"encoding/json"
	"errors"

	"hamr/store"
)

// storeArguments are what calls that are seldom made have; each uses some.
type storeArguments struct {
	ID, Name     string
	IDs          []string
	Count        int
	After        uint64
	Milliseconds int
	On           bool
}

var storeCalls = map[string]func(c *store.Client, a storeArguments, id store.ID) (any, error){
	"put_name": func(c *store.Client, a storeArguments, id store.ID) (any, error) {
		return nil, c.PutName(context.Background(), a.Name, id, a.On)
	},
	"drop_name": func(c *store.Client, a storeArguments, _ store.ID) (any, error) {
		return nil, c.DropName(context.Background(), a.Name)
	},
	"get_name": func(c *store.Client, a storeArguments, _ store.ID) (any, error) {
		ctx, end := within(a.Milliseconds)
		defer end()
		id, err := c.GetName(ctx, a.Name, a.Milliseconds > 0)
		if a.Milliseconds > 0 && errors.Is(err, context.DeadlineExceeded) {
			return "", nil
		}
		return id.String(), err
	},
	"exists": func(c *store.Client, _ storeArguments, id store.ID) (any, error) {
		there, _, err := c.Exists(context.Background(), id)
		return there, err
	},
	"info": func(c *store.Client, _ storeArguments, id store.ID) (any, error) {
		info, err := c.Describe(context.Background(), id)
		return storeInfo(info), err
	},
	"list": func(c *store.Client, a storeArguments, _ store.ID) (any, error) {
		list, next, err := c.List(context.Background(), store.ListOptions{Unsealed: true, Named: a.Name != "", Prefix: a.Name, After: a.After})
		objects := make([]any, len(list))
		for i, info := range list {
			objects[i] = storeInfo(info)
		}
		return map[string]any{"objects": objects, "after": next}, err
	},
	"wait": func(c *store.Client, a storeArguments, _ store.ID) (any, error) {
		ids := make([]store.ID, len(a.IDs))
		for i, text := range a.IDs {
			var err error
			if ids[i], err = store.ParseID(text); err != nil {
				return nil, err
			}
		}
		ctx, end := within(max(a.Milliseconds, 1))
		defer end()
		ready, err := c.Wait(ctx, ids, a.Count)
		if errors.Is(err, context.DeadlineExceeded) {
			ready, err = c.Wait(context.Background(), ids, 0)
		}
		texts := make([]string, len(ready))
		for i, id := range ready {
			texts[i] = id.String()
		}
		return texts, err
	},
	"set_metadata": func(c *store.Client, a storeArguments, id store.ID) (any, error) {
		return nil, c.SetMetadata(context.Background(), id, []byte(a.Name))
	},
	"pin": func(c *store.Client, a storeArguments, id store.ID) (any, error) {
		if a.On {
			return nil, c.Pin(context.Background(), id)
		}
		return nil, c.Unpin(context.Background(), id)
	},
	"set_evictable": func(c *store.Client, a storeArguments, id store.ID) (any, error) {
		return nil, c.SetEvictable(context.Background(), id, a.On)
	},
	"statistics": func(c *store.Client, _ storeArguments, _ store.ID) (any, error) {
		t, err := c.Statistics(context.Background())
		return storeFigures(t), err
	},
}

// StoreCall makes a call of a client that is seldom made: arguments and reply are JSON.
func StoreCall(client uint64, operation, arguments string) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	c, err := storeThing[*store.Client](client)
	if err != nil {
		return "", err
	}
	var a storeArguments
	if err := json.Unmarshal([]byte(arguments), &a); err != nil {
		return "", err
	}
	var id store.ID
	if a.ID != "" {
		if id, err = store.ParseID(a.ID); err != nil {
			return "", err
		}
	}
	result, err := storeCalls[operation](c, a, id)
	if err != nil {
		return "", err
	}
	return textOf(result)
}

func storeInfo(i store.Info) map[string]any {
	shape, names := i.Layout.Shape, i.Names
	if shape == nil {
		shape = []int{}
	}
	if names == nil {
		names = []string{}
	}
	device := "host"
	if i.Device != [16]byte{} {
		device = i.Device.String()
	}
	var metadata json.RawMessage
	if len(i.Metadata) > 0 {
		metadata = i.Metadata
	}
	return map[string]any{
		"id": i.ID.String(), "shape": shape, "dtype": i.Layout.Type.String(), "nbytes": i.Bytes, "device": device,
		"sealed": i.Sealed, "evictable": i.Evictable, "pinned": i.Pinned, "leases": i.Leases, "names": names,
		"metadata": metadata,
	}
}

func storeFigures(t store.Statistics) map[string]any {
	memory := map[string]any{}
	for _, m := range t.Memories {
		memory[m.Name] = map[string]int64{"limit": m.Limit, "used": m.Used, "peak": m.Peak, "lingering": m.Lingering}
	}
	return map[string]any{
		"objects": t.Objects, "unsealed": t.Unsealed, "names": t.Names, "leases": t.Leases, "connections": t.Sessions,
		"table": t.Table, "table_limit": t.TableLimit, "evicted": t.Evicted, "spilled": t.Spilled, "spills": t.Spills,
		"restored": t.Restored, "requests": t.Requests, "refused": t.Refused, "breaches": t.Breaches, "memory": memory,
	}
}

// StoreEvents begins to be told of what happens to objects.
func StoreEvents(client uint64) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	c, err := storeThing[*store.Client](client)
	if err != nil {
		return "", err
	}
	w, err := c.Watch(context.Background())
	if err != nil {
		return "", err
	}
	return textOf(keepStoreThing(w))
}

// StoreNextEvents returns the events since the last call as JSON, nothing if there is none within so
// many milliseconds.
func StoreNextEvents(token uint64, milliseconds int) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	w, err := storeThing[*store.Watch](token)
	if err != nil {
		return "", err
	}
	ctx, end := within(max(milliseconds, 1))
	defer end()
	list, err := w.Next(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	told := make([]any, len(list))
	for i, e := range list {
		told[i] = map[string]any{"kind": e.Kind.String(), "id": e.ID.String(), "name": e.Name, "missed": e.Missed}
	}
	return textOf(told)
}

// StoreEndEvents ends it.
func StoreEndEvents(token uint64) {
	if w, err := takeStoreThing[*store.Watch](token); err == nil {
		_ = w.Close()
	}
}
