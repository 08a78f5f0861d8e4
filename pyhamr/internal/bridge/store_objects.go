package bridge

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store"
)

// storeObject is an object that somebody has a token of.
type storeObject struct {
	builder atomic.Pointer[store.Builder] // nil once it was sealed or aborted
	object  *store.Object
	group   *store.Group     // whose object it is
	written *gobuffer.Memory // the builder's, where its elements are lent, until the token ends
	private *gobuffer.Array  // what is lent instead of the object's
}

// Creation is what a new object is to be.
type Creation struct {
	Of       *Descriptor // its element type, shape and place
	Flags    uint32
	Metadata []byte
}

// HAMR_STORE_EVICTABLE … of hamr/store_interface.h.
const (
	storeEvictable = 1 << iota
	storePinned
	storeSeparate
	storeIsSealed // told alone
	storeSession
	storeWhole = 1 << 16 // HAMR_STORE_WHOLE
)

func (c Creation) description() store.Description {
	d := described(c.Flags, c.Metadata)
	d.Type, d.Shape = arrayiface.ElementType(c.Of.Element), slices.Clone(c.Of.borrowedShape())
	d.Allocator, d.Device = backends.Allocator(c.Of.Allocator), int(c.Of.Device)
	return d
}

// described is what a new object is to be, beside its elements.
func described(flags uint32, metadata []byte) store.Description {
	return store.Description{
		Metadata: metadata, Evictable: flags&storeEvictable != 0, Pinned: flags&storePinned != 0,
		Separate: flags&storeSeparate != 0, Session: flags&storeSession != 0,
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

// placeOfObject is where an object is made: of a device that is not named, the calling thread's.
func placeOfObject(a backends.Allocator, device int) (backends.Allocator, int, error) {
	if device >= 0 || !a.Valid() || a.Kind() != backends.DeviceOnly {
		return a, device, nil
	}
	device, err := CurrentDevice(a.Facts().Backend)
	return a, device, err
}

// CreateObject makes an object, and describes its elements at result. The token is the builder's.
func CreateObject(a Asking, what Creation, result *Descriptor, id *StoreID, token *uint64) (err error) {
	defer Guard(&err)
	described := what.description()
	if described.Allocator, described.Device, err = placeOfObject(described.Allocator, described.Device); err != nil {
		return err
	}
	return a.Change(func(ctx context.Context, c *store.Client) error {
		b, err := c.Create(ctx, described)
		if err != nil {
			return err
		}
		if what.Flags&storeWhole != 0 {
			if err := b.Prepare(ctx); err != nil {
				return errors.Join(err, b.GiveUp())
			}
		}
		o := &storeObject{}
		o.builder.Store(b)
		if a.How&lentFlag != 0 {
			o.written = b.Array().Memory().Retain()
			result.lend(b.Array(), false)
		} else {
			result.Store(b.Array(), nil)
		}
		*id, *token = b.ID(), storeObjects.keep(o)
		return nil
	})
}

// lend describes elements that a token keeps. Their memory is no token's.
func (d *Descriptor) lend(a *gobuffer.Array, readOnly bool) {
	at := a.Memory().Region()
	if a.Layout().NBytes() == 0 {
		at.Allocator = backends.Shared // the core's memory of no bytes is any
	}
	d.Memory, d.Base, d.Size, d.Marks = 0, 0, 0, 0
	d.Stream, d.StreamOf, d.Transfer = 0, 0, int32(gobuffer.SyncHost)
	d.Allocator, d.Device = int32(at.Allocator), int32(at.Device)
	d.place(uint64(a.Address()), a.Capacity(), a.Layout(), readOnly, nil)
}

// takeBuilder returns an object and its builder, once.
func takeBuilder(token uint64) (*storeObject, *store.Builder, error) {
	o, err := storeObjects.get(token)
	if err != nil {
		return nil, nil, err
	}
	b := o.builder.Swap(nil)
	if b == nil {
		return nil, nil, store.ErrClosed
	}
	return o, b, nil
}

// SealObject seals an object, which nobody has the elements of but who calls where alone is set, and describes the
// sealed elements at result unless that is nil. After an error the object is gone. The token is of the sealed object's
// lease from now on; alone, it has none.
func SealObject(how uint32, token uint64, alone bool, result *Descriptor, sealed *int32) (err error) {
	defer Guard(&err)
	o, b, err := takeBuilder(token)
	if err != nil {
		return err
	}
	if alone {
		b.Forgo()
	}
	finish := func(object *store.Object, err error) error {
		if err != nil {
			return err
		}
		o.object, *sealed = object, 1
		if result != nil {
			result.Store(object.Array(), nil)
		}
		return nil
	}
	seal := b.Seal
	if how&promptFlag != 0 && b.Prompt() {
		at, end := sliceContext()
		object, rest, err := b.SealSoon(at)
		end()
		if rest == nil {
			return finish(object, err)
		}
		seal = rest
	}
	return patiently(how, func(ctx context.Context, _ *backends.Stop) error { return finish(seal(ctx)) })
}

// AbortObject gives an object up.
func AbortObject(how uint32, token uint64) (err error) {
	defer Guard(&err)
	_, b, err := takeBuilder(token)
	if err != nil {
		return err
	}
	return patiently(how, func(ctx context.Context, _ *backends.Stop) error { return b.Abort(ctx) })
}

// GetObject describes an object's elements at result; with milliseconds it is waited for. The token is
// of the lease. sealed is whether the object was. With privateFlag the elements are those of Private, if there are any.
func GetObject(a Asking, id StoreID, unsealed bool, milliseconds int64, result *Descriptor, token *uint64,
	sealed *int32) error {
	ask := a.query
	if milliseconds != 0 {
		ask = a.Change
	}
	return ask(func(ctx context.Context, c *store.Client) error {
		o, err := getWithin(ctx, c, id, unsealed, atMost(milliseconds))
		if err != nil {
			return err
		}
		kept := &storeObject{object: o}
		if a.How&privateFlag != 0 {
			if kept.private, err = o.Private(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
				return errors.Join(err, o.Release())
			}
		}
		switch {
		case kept.private != nil:
			result.lend(kept.private, false)
		case a.How&lentFlag != 0:
			result.lend(o.Array(), o.Array().ReadOnly() || o.Info().Sealed)
		default:
			result.Store(o.Array(), nil)
		}
		*sealed, *token = bit(o.Info().Sealed), storeObjects.keep(kept)
		return nil
	})
}

// PutObject makes an object of a copy of elements, in memory of an allocator, or beside them for backends.Any.
func PutObject(a Asking, what Creation, allocator backends.Allocator, device int, id *StoreID) (err error) {
	defer Guard(&err)
	c, err := storeClients.get(a.Session)
	if err != nil {
		return err
	}
	described := what.description()
	if allocator == backends.None {
		described.Allocator = StoreAllocator(described.Allocator, described.Device)
	} else if described.Allocator, described.Device, err = placeOfObject(allocator, device); err != nil {
		return err
	}
	return patiently(a.How, func(ctx context.Context, stop *backends.Stop) error {
		return onUntil(stop, what.Of, func(source *gobuffer.Array) error {
			made, err := c.Put(ctx, source, described)
			if err == nil {
				*id = made
			}
			return err
		})
	})
}

// DiscardObject deletes an object that was made and nobody is to know of. It waits for nobody.
func DiscardObject(session uint64, id StoreID) {
	if c, err := storeClients.get(session); err == nil {
		c.Discard(id)
	}
}

// EndObject ends a lease, whose memory is not used any more, or a builder. That of the maker of a sealed object whose
// elements were lent ends soon: who seals does not wait for the end of what it has mapped.
func EndObject(token uint64) {
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
	if o.group != nil {
		_ = o.group.Release()
	} else if o.object != nil {
		_ = o.object.Release()
	} else if b := o.builder.Swap(nil); b != nil {
		_ = b.GiveUp()
	}
	_ = o.written.Release()
	if o.private != nil {
		_ = o.private.Close()
	}
}

// storeAnswersWithin is how many milliseconds a server that stands still may have a wait take longer than it was to.
const storeAnswersWithin = 100

// getWithin gets an object, and waits for it for so long: 0 is not at all, below 0 for ever. The error is
// context.DeadlineExceeded where there is none by then.
func getWithin(ctx context.Context, c *store.Client, id StoreID, unsealed bool,
	milliseconds int) (*store.Object, error) {
	return waitingFor(ctx, milliseconds, func(ctx context.Context, wait bool) (*store.Object, error) {
		return c.Get(ctx, id, store.GetOptions{Unsafe: unsealed, Wait: wait})
	})
}

// waitingFor asks for what is waited for so long. Where the time is over it asks once more what there is now: on a busy
// machine the answer to a short wait may come later than the wait's end.
func waitingFor[T any](ctx context.Context, milliseconds int,
	ask func(ctx context.Context, wait bool) (T, error)) (T, error) {
	if milliseconds == 0 {
		return ask(ctx, false)
	}
	soon, end := within(ctx, milliseconds)
	defer end()
	found, err := ask(soon, true)
	if !errors.Is(err, context.DeadlineExceeded) {
		return found, err
	}
	last, end := within(ctx, storeAnswersWithin)
	defer end()
	found, err = ask(last, false)
	if errors.As(err, new(*store.NotFoundError)) || errors.As(err, new(*store.NotSealedError)) {
		err = context.DeadlineExceeded
	}
	return found, err
}
