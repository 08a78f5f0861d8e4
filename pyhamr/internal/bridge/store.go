package bridge

import (
	"context"
	"io"
	"math"
	"time"
	"unsafe"

	"hamr/backends"
	"hamr/internal/deadline"
	"hamr/store"
)

// What Python and C have of the store, by numbers.
var (
	storeServers = newNumbered[*store.Server](storeClosed)
	storeClients = newNumbered[*store.Client](storeClosed)
	storeObjects = newNumbered[*storeObject](storeClosed)
	storeWatches = newNumbered[io.Closer](storeClosed) // *store.Watch and *store.NameWatch
)

// RecordedDescriptors is the address of store's variable of that name, which never moves.
func RecordedDescriptors() uintptr { return uintptr(unsafe.Pointer(store.Recorded())) }

func storeClosed(uint64) error { return store.ErrClosed }

// StoreID is store.ID.
type StoreID = store.ID

// Serve starts a server of the store in this process.
func Serve(o store.ServerOptions, spillDevices bool) (token uint64, listens string, err error) {
	defer Guard(&err)
	if o.Socket == 0 {
		o.Path = pathOf(o.Path)
	}
	if spillDevices {
		o.SpillDevices = Runtime
	}
	s, err := store.Listen(o)
	if err != nil {
		return 0, "", err
	}
	go func() { _ = s.Serve(context.Background()) }()
	return storeServers.keep(s), s.Path(), nil
}

// pathOf is a server's path, also where the caller names none.
func pathOf(path string) string {
	if path == "" {
		return store.DefaultPathBy(Settings.Get)
	}
	return path
}

// Served returns a server's figures.
func Served(token uint64) (t store.Statistics, err error) {
	defer Guard(&err)
	s, err := storeServers.get(token)
	if err != nil {
		return t, err
	}
	return s.Statistics(), nil
}

// EndServer ends it.
func EndServer(token uint64) (err error) {
	defer Guard(&err)
	s, err := storeServers.take(token)
	if err != nil {
		return err
	}
	return s.Close()
}

// Connect begins a session with a server.
func Connect(how uint32, path string, milliseconds int64, made func(token uint64, path string)) (err error) {
	defer Guard(&err)
	return patiently(how, func(ctx context.Context, _ *backends.Stop) error {
		limited, end := soon(ctx, milliseconds)
		defer end()
		c, err := store.Connect(limited, pathOf(path), Runtime)
		if err == nil {
			made(storeClients.keep(c), c.Path())
		}
		return err
	})
}

// Disconnect ends it, and with it the calls that are under way.
func Disconnect(token uint64) (err error) {
	defer Guard(&err)
	storeEndings.now()
	c, err := storeClients.take(token)
	if err != nil {
		return err
	}
	return c.Close()
}

// LimitAnswers ends requests of a session that are not answered for so many milliseconds; -1 is no limit.
func LimitAnswers(token uint64, milliseconds int64) (err error) {
	defer Guard(&err)
	c, err := storeClients.get(token)
	if err != nil {
		return err
	}
	return c.SetTimeout(time.Duration(max(atMost(milliseconds), 0)) * time.Millisecond)
}

// HowFlags are all that Asking's How may have.
const HowFlags = promptFlag | lentFlag | privateFlag

// Asking is which session is asked, and how.
type Asking struct {
	Session uint64
	How     uint32
}

// Change makes a call that changes something, or waits. It is the body of all methods of clients that the bridge has no
// function for.
func (a Asking) Change(f func(ctx context.Context, c *store.Client) error) (err error) {
	defer Guard(&err)
	c, err := storeClients.get(a.Session)
	if err != nil {
		return err
	}
	return patiently(a.How, func(ctx context.Context, _ *backends.Stop) error { return f(ctx, c) })
}

// query makes a call that changes nothing and waits for nothing.
func (a Asking) query(f func(ctx context.Context, c *store.Client) error) (err error) {
	defer Guard(&err)
	c, err := storeClients.get(a.Session)
	if err != nil {
		return err
	}
	return promptly(a.How, func(ctx context.Context) error { return f(ctx, c) })
}

// patiently calls f, in slices with promptFlag. Then stop asks f to end, and its context ends, too.
func patiently(how uint32, f func(ctx context.Context, stop *backends.Stop) error) error {
	storeEndings.now()
	if how&promptFlag == 0 {
		return f(context.Background(), nil)
	}
	return inSlicesUntil(f)
}

// promptly is patiently for what may be asked twice: at first on this thread, where an answer that comes at once comes
// sooner.
func promptly(how uint32, f func(ctx context.Context) error) error {
	if how&promptFlag != 0 {
		storeEndings.now()
		if late, err := withinSlice(f); !late {
			return err
		}
	}
	return patiently(how, func(ctx context.Context, _ *backends.Stop) error { return f(ctx) })
}

// soon is a context that ends after so many milliseconds.
func soon(ctx context.Context, milliseconds int64) (context.Context, context.CancelFunc) {
	if milliseconds == 0 {
		c := deadline.Until(ctx, time.Now())
		return c, c.End
	}
	return within(ctx, atMost(milliseconds))
}

// within is a context that ends after so many milliseconds, or with its parent alone for 0 and less.
func within(ctx context.Context, milliseconds int) (context.Context, context.CancelFunc) {
	if milliseconds <= 0 {
		return ctx, func() {}
	}
	c := deadline.Until(ctx, time.Now().Add(time.Duration(milliseconds)*time.Millisecond))
	return c, c.End
}

// atMost is how long within waits for so many milliseconds: more than there can be are no limit, as is -1.
func atMost(milliseconds int64) int {
	if milliseconds > math.MaxInt64/int64(time.Millisecond) {
		return -1
	}
	return int(milliseconds)
}
