package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"time"

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

var storeCalls = map[string]func(ctx context.Context, c *store.Client, a storeArguments, id store.ID) (any, error){
	"put_name": func(ctx context.Context, c *store.Client, a storeArguments, id store.ID) (any, error) {
		return nil, c.PutName(ctx, a.Name, id, a.On)
	},
	"drop_name": func(ctx context.Context, c *store.Client, a storeArguments, _ store.ID) (any, error) {
		return nil, c.DropName(ctx, a.Name)
	},
	"get_name": func(ctx context.Context, c *store.Client, a storeArguments, _ store.ID) (any, error) {
		id, err := getNameWithin(ctx, c, a.Name, max(a.Milliseconds, 0))
		if a.Milliseconds > 0 && errors.Is(err, context.DeadlineExceeded) {
			return "", nil
		}
		return id.String(), err
	},
	"exists": func(ctx context.Context, c *store.Client, _ storeArguments, id store.ID) (any, error) {
		there, _, err := c.Exists(ctx, id)
		return there, err
	},
	"info": func(ctx context.Context, c *store.Client, _ storeArguments, id store.ID) (any, error) {
		info, err := c.Describe(ctx, id)
		return storeInfo(info), err
	},
	"list": func(ctx context.Context, c *store.Client, a storeArguments, _ store.ID) (any, error) {
		list, next, err := c.List(ctx, store.ListOptions{Unsealed: true, Named: a.Name != "", Prefix: a.Name, After: a.After})
		objects := make([]any, len(list))
		for i, info := range list {
			objects[i] = storeInfo(info)
		}
		return map[string]any{"objects": objects, "after": next}, err
	},
	"wait": func(ctx context.Context, c *store.Client, a storeArguments, _ store.ID) (any, error) {
		ids := make([]store.ID, len(a.IDs))
		for i, text := range a.IDs {
			var err error
			if ids[i], err = store.ParseID(text); err != nil {
				return nil, err
			}
		}
		soon, end := within(ctx, max(a.Milliseconds, 1))
		defer end()
		ready, err := c.Wait(soon, ids, a.Count)
		if errors.Is(err, context.DeadlineExceeded) {
			if err = nil; ready == nil {
				soon, end := within(ctx, storeAnswersWithin)
				defer end()
				if ready, err = c.Wait(soon, ids, 0); errors.Is(err, context.DeadlineExceeded) {
					err = nil // the server stands still
				}
			}
		}
		texts := make([]string, len(ready))
		for i, id := range ready {
			texts[i] = id.String()
		}
		return texts, err
	},
	"pin": func(ctx context.Context, c *store.Client, a storeArguments, id store.ID) (any, error) {
		if a.On {
			return nil, c.Pin(ctx, id)
		}
		return nil, c.Unpin(ctx, id)
	},
	"set_evictable": func(ctx context.Context, c *store.Client, a storeArguments, id store.ID) (any, error) {
		return nil, c.SetEvictable(ctx, id, a.On)
	},
	"statistics": func(ctx context.Context, c *store.Client, _ storeArguments, _ store.ID) (any, error) {
		t, err := c.Statistics(ctx)
		return storeFigures(t), err
	},
}

// storeQueries are those that change nothing, and wait for nothing.
var storeQueries = map[string]bool{"exists": true, "info": true, "list": true, "statistics": true}

// StoreCall makes a call of a client that is seldom made: arguments and reply are JSON.
func StoreCall(call, client uint64, operation, arguments string) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	c, err := storeClients.get(client)
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
	ask := patiently
	if storeQueries[operation] {
		ask = promptly
	}
	return ask(call, nil, func(ctx context.Context) (string, error) {
		result, err := storeCalls[operation](ctx, c, a, id)
		if err != nil {
			return "", err
		}
		return textOf(result)
	})
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
	problem := ""
	if err := store.CheckMetadata(i.Metadata); err != nil { // of another version's server
		problem = err.Error()
	} else if len(i.Metadata) > 0 {
		metadata = i.Metadata
	}
	return map[string]any{
		"id": i.ID.String(), "shape": shape, "dtype": i.Layout.Type.String(), "nbytes": i.Bytes, "device": device,
		"sealed": i.Sealed, "evictable": i.Evictable, "pinned": i.Pinned, "leases": i.Leases, "names": names,
		"metadata": metadata, "problem": problem,
	}
}

func storeFigures(t store.Statistics) map[string]any {
	memory := map[string]any{}
	for _, m := range t.Memories {
		memory[m.Name] = map[string]int64{"limit": m.Limit, "used": m.Used, "peak": m.Peak, "lingering": m.Lingering, "ready": m.Ready}
	}
	return map[string]any{
		"objects": t.Objects, "unsealed": t.Unsealed, "names": t.Names, "leases": t.Leases, "connections": t.Sessions,
		"table": t.Table, "table_limit": t.TableLimit, "evicted": t.Evicted, "spilled": t.Spilled, "spills": t.Spills,
		"restored": t.Restored, "requests": t.Requests, "refused": t.Refused, "breaches": t.Breaches,
		"ready_hits": t.ReadyHits, "ready_misses": t.ReadyMisses, "memory": memory,
	}
}

// StoreEvents begins to be told of what happens to objects. The events have the call's number.
func StoreEvents(call, client uint64) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	c, err := storeClients.get(client)
	if err != nil {
		return "", err
	}
	return patiently(call, nil, func(ctx context.Context) (string, error) {
		w, err := c.Watch(ctx)
		if err != nil {
			return "", err
		}
		storeWatches.put(call, w)
		return "", nil
	})
}

// StoreNextEvents returns the events since the last call as JSON, nothing if there is none within so
// many milliseconds.
func StoreNextEvents(call, token uint64, milliseconds int) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	w, err := storeWatches.get(token)
	if err != nil {
		return "", err
	}
	return patiently(call, nil, func(ctx context.Context) (string, error) {
		soon, end := within(ctx, max(milliseconds, 1))
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
	})
}

// StoreEndEvents ends it, also what is about to begin.
func StoreEndEvents(token uint64) {
	StoreStop(token)
	if w, err := storeWatches.take(token); err == nil {
		_ = w.Close()
	}
}
