package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/internal/deadline"
	"hamr/store"
)

// What Python has of the store, by numbers of its own: it ends what has one also where an exception has taken the
// reply. C has the core's numbers.
var (
	storeServers = newNumbered[*store.Server](storeClosed)
	storeClients = newNumbered[*store.Client](storeClosed)
	storeObjects = newNumbered[*storeObject](storeClosed)
	storeWatches = newNumbered[*store.Watch](storeClosed)
)

// RecordedDescriptors is the address of store's variable of that name, which never moves.
func RecordedDescriptors() uintptr { return uintptr(unsafe.Pointer(store.Recorded())) }

func storeClosed(uint64) error { return store.ErrClosed }

// storeObject is an object that Python's Lease is of.
type storeObject struct {
	builder *store.Builder // nil once it was sealed or aborted
	object  *store.Object
	written *gobuffer.Memory // the builder's, which Python's buffers are over until the Lease ends
}

// StoreServe starts a server; options are JSON: path, socket, host, device, ready, spill, devices, metadata.
func StoreServe(number uint64, options string) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	var given struct {
		Path, Spill                   string
		Host, Device, Ready, Metadata int64
		Socket                        int
		Devices                       bool // are spilled, too
	}
	if err := json.Unmarshal([]byte(options), &given); err != nil {
		return "", err
	}
	o := store.ServerOptions{
		Path: given.Path, Socket: given.Socket, HostLimit: given.Host, DeviceLimit: given.Device, Spill: given.Spill,
		Ready: given.Ready, MaxMetadata: int(given.Metadata),
	}
	if given.Devices {
		o.SpillDevices = Runtime
	}
	s, err := listen(o)
	if err != nil {
		return "", err
	}
	storeServers.put(number, s)
	return s.Path(), nil
}

// pathOf is a server's path, also where the caller names none.
func pathOf(path string) string {
	if path == "" {
		return store.DefaultPathBy(Settings.Get)
	}
	return path
}

// listen starts a server.
func listen(o store.ServerOptions) (*store.Server, error) {
	if o.Socket == 0 {
		o.Path = pathOf(o.Path)
	}
	s, err := store.Listen(o)
	if err == nil {
		go func() { _ = s.Serve(context.Background()) }()
	}
	return s, err
}

// StoreServed returns a server's figures.
func StoreServed(token uint64) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	s, err := storeServers.get(token)
	if err != nil {
		return "", err
	}
	return textOf(storeFigures(s.Statistics()))
}

// StoreEndServer ends a server.
func StoreEndServer(token uint64) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	s, err := storeServers.take(token)
	if err != nil {
		return "", err
	}
	return "", s.Close()
}

// StoreConnect connects to a server at a path, or where servers are by default, and returns the path. The client has
// the call's number.
func StoreConnect(call uint64, path string) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	return patiently(call, nil, func(ctx context.Context) (string, error) {
		c, err := store.Connect(ctx, pathOf(path), Runtime)
		if err != nil {
			return "", err
		}
		storeClients.put(call, c)
		return c.Path(), nil
	})
}

// StoreDisconnect ends a client, also one that is being made.
func StoreDisconnect(token uint64) {
	StoreStop(token)
	storeEndings.now()
	if c, err := storeClients.take(token); err == nil {
		_ = c.Close()
	}
}

// StoreAllocator returns the allocator of the objects that are where memory of another one is: that
// of the device's which can be shared, else that of the host.
func StoreAllocator(a backends.Allocator, device int) backends.Allocator {
	if device < 0 || !a.Valid() {
		return backends.Shared
	}
	b, err := Runtime.Backend(a)
	if err != nil {
		return backends.Shared
	}
	sharer, ok := backends.As[backends.Sharer](b)
	if !ok || sharer.Shares(device) != nil {
		return backends.Shared
	}
	if grower, ok := backends.As[backends.Grower](b); ok {
		for _, its := range backends.Allocators() {
			if its.Facts().Backend == a.Facts().Backend && grower.Grows(its) {
				return its
			}
		}
	}
	return a
}

const (
	storeEvictable = 1 << iota
	storePinned
	storeSeparate
	storeIsSealed // told alone
	storeSession
)

// StoreCreate makes an object, and returns what Python's Lease is of: see storePlace. It has the call's number.
func StoreCreate(call, client uint64, element int, shape string, a backends.Allocator, device, flags int, metadata string) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	c, err := storeClients.get(client)
	if err != nil {
		return "", err
	}
	what, err := storeDescription(element, shape, flags, metadata)
	if err != nil {
		return "", err
	}
	if what.Allocator, what.Device, err = placeOfObject(a, device); err != nil {
		return "", err
	}
	return patiently(call, nil, func(ctx context.Context) (string, error) {
		b, err := c.Create(ctx, what)
		if err != nil {
			return "", err
		}
		storeObjects.put(call, &storeObject{builder: b, written: b.Array().Memory().Retain()})
		return storePlace(b.Array(), b.ID(), false), nil
	})
}

// placeOfObject is where an object is made: of a device that is not named, the calling thread's.
func placeOfObject(a backends.Allocator, device int) (backends.Allocator, int, error) {
	if device >= 0 || !a.Valid() || a.Kind() != backends.DeviceOnly {
		return a, device, nil
	}
	device, err := CurrentDevice(a.Facts().Backend)
	return a, device, err
}

// flagged is a description with what flags say.
func flagged(flags int, what store.Description) store.Description {
	what.Evictable, what.Pinned, what.Separate = flags&storeEvictable != 0, flags&storePinned != 0, flags&storeSeparate != 0
	what.Session = flags&storeSession != 0
	return what
}

func storeDescription(element int, shape string, flags int, metadata string) (what store.Description, err error) {
	what = flagged(flags, store.Description{Type: arrayiface.ElementType(element), Metadata: []byte(metadata)})
	for _, n := range strings.Fields(shape) {
		length, err := strconv.Atoi(n)
		if err != nil {
			return what, err
		}
		what.Shape = append(what.Shape, length)
	}
	return what, nil
}

// StorePut copies elements of the host that lie in C order at an address, on which no work is pending,
// into a new object of the host's, seals it, and returns its id.
func StorePut(call, client uint64, at backends.Address, element int, shape string, flags int, metadata string) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	c, err := storeClients.get(client)
	if err != nil {
		return "", err
	}
	what, err := storeDescription(element, shape, flags, metadata)
	if err != nil {
		return "", err
	}
	layout, err := arrayiface.NewLayout(what.Type, what.Shape, nil)
	if err != nil {
		return "", err
	}
	what.Allocator = backends.Shared
	from := backends.Region{Address: at, Allocator: backends.Malloc, Device: backends.HostDevice}
	memory, err := Runtime.Adopt(from, layout.NBytes(), 0, nil)
	if err != nil {
		return "", err
	}
	source := gobuffer.View(memory, at, layout, layout.Count(), true, gobuffer.Options{Allocator: backends.Malloc})
	undo := func(reply string) {
		if id, err := store.ParseID(reply); err == nil {
			c.Discard(id)
		}
	}
	return patiently(call, undo, func(ctx context.Context) (string, error) {
		id, err := c.Put(ctx, source, what)
		return id.String(), errors.Join(err, source.Close())
	})
}

// storePlace is where an object's elements start, its id, the allocator, the device, the number of bytes, whether the
// object is sealed, its type and its shape.
func storePlace(a *gobuffer.Array, id store.ID, sealed bool) string {
	at, layout := a.Memory().Region(), a.Layout()
	flag := int64(0)
	if sealed {
		flag = 1
	}
	text := strconv.AppendUint(make([]byte, 0, 128), uint64(a.Address()), 10)
	text = append(append(text, ' '), id.String()...)
	for _, n := range []int64{int64(at.Allocator), int64(at.Device), int64(layout.NBytes()), flag} {
		text = strconv.AppendInt(append(text, ' '), n, 10)
	}
	text = append(append(text, ' '), layout.Type.String()...)
	for _, n := range layout.Shape {
		text = strconv.AppendInt(append(text, ' '), int64(n), 10)
	}
	return string(text)
}

// takeBuilder returns an object and its builder, once.
func takeBuilder(token uint64) (*storeObject, *store.Builder, error) {
	o, err := storeObjects.get(token)
	if err != nil {
		return nil, nil, err
	}
	b := o.builder
	if b == nil {
		return nil, nil, store.ErrClosed
	}
	o.builder = nil
	return o, b, nil
}

// StoreSeal seals an object. Its lease goes on, unless nobody but Python's Builder has it.
func StoreSeal(call, token uint64, alone bool) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	o, b, err := takeBuilder(token)
	if err != nil {
		return "", err
	}
	if alone {
		b.Forgo()
	}
	undo := func(string) { b.Unmake() }
	seal := b.Seal
	if handlesSignals() && b.Prompt() {
		soon := newSliceContext()
		defer soon.End()
		if o.object, seal, err = b.SealSoon(soon); seal == nil {
			noteOutcome(call, undo, "", err)
			return "", err
		}
	}
	return patiently(call, undo, func(ctx context.Context) (string, error) {
		sealed, err := seal(ctx)
		o.object = sealed
		return "", err
	})
}

// StoreAbort gives an object up.
func StoreAbort(call, token uint64) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	_, b, err := takeBuilder(token)
	if err != nil {
		return "", err
	}
	return patiently(call, nil, func(ctx context.Context) (string, error) { return "", b.Abort(ctx) })
}

// StoreGet gets an object: see storePlace. The lease has the call's number. With milliseconds above 0 it waits for that long, and
// returns nothing if there is no sealed one by then.
func StoreGet(call, client uint64, id string, unsealed bool, milliseconds int) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	c, err := storeClients.get(client)
	if err != nil {
		return "", err
	}
	parsed, err := store.ParseID(id)
	if err != nil {
		return "", err
	}
	ask := promptly
	if milliseconds > 0 {
		ask = patiently
	}
	return ask(call, nil, func(ctx context.Context) (string, error) {
		o, err := getWithin(ctx, c, parsed, unsealed, max(milliseconds, 0))
		if milliseconds > 0 && errors.Is(err, context.DeadlineExceeded) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		storeObjects.put(call, &storeObject{object: o})
		return storePlace(o.Array(), parsed, o.Info().Sealed), nil
	})
}

// StoreDelete deletes an object.
func StoreDelete(call, client uint64, id string, force bool) (reply string, err error) {
	defer storeReply(&reply, &err)
	defer Guard(&err)
	c, err := storeClients.get(client)
	if err != nil {
		return "", err
	}
	parsed, err := store.ParseID(id)
	if err != nil {
		return "", err
	}
	return patiently(call, nil, func(ctx context.Context) (string, error) {
		return "", c.Delete(ctx, parsed, force)
	})
}

// StoreDiscard deletes an object that was made and nobody is to know of. It waits for nobody.
func StoreDiscard(client uint64, id string) {
	c, err := storeClients.get(client)
	if err != nil {
		return
	}
	if parsed, err := store.ParseID(id); err == nil {
		c.Discard(parsed)
	}
}

// StoreRelease ends a lease, also one that a call is still to get, whose memory is not used any more. That of the
// maker of a sealed object ends soon: who seals does not wait for the end of what it has mapped.
func StoreRelease(token uint64) {
	StoreStop(token)
	o, err := storeObjects.take(token)
	if err != nil {
		return
	}
	if o.object != nil && o.written != nil {
		storeEndings.later(o)
		return
	}
	o.end()
}

func (o *storeObject) end() {
	if o.object != nil {
		_ = o.object.Release()
	} else if o.builder != nil {
		_ = o.builder.GiveUp()
	}
	_ = o.written.Release()
}

// within is a context that ends after so many milliseconds, or with its parent alone for 0 and less.
func within(ctx context.Context, milliseconds int) (context.Context, context.CancelFunc) {
	if milliseconds <= 0 {
		return ctx, func() {}
	}
	c := deadline.Until(ctx, time.Now().Add(time.Duration(milliseconds)*time.Millisecond))
	return c, c.End
}

func textOf(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}
