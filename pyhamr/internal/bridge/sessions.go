package bridge

import (
	"context"
	"errors"
	"math"
	"time"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/internal/deadline"
	"hamr/store"
)

// What C programs do with the store. Their threads wait in the calls, whichever they are: the calls
// of store.go are Python's, which handles signals meanwhile. Waits are of milliseconds, -1 for ever.

// StoreID is store.ID.
type StoreID = store.ID

// The kinds of the store's errors: HAMR_ERROR_NOT_FOUND … of hamr/store.h.
const (
	storeNotFound Kind = iota + 32
	storeNotSealed
	storeSealed
	storeNameTaken
	storeFull
	storeLost
	storeRefused
	storeTimeout
	storeFailed
)

// classifyStore sets what is known of an error of the store's.
func (f *Failure) classifyStore(err error) {
	told := storeError(err)
	kind, known := map[string]Kind{
		"not found": storeNotFound, "not sealed": storeNotSealed, "sealed": storeSealed, "name taken": storeNameTaken,
		"full": storeFull, "lost": storeLost, "refused": storeRefused, "timeout": storeTimeout, "store": storeFailed,
		"system": storeFailed,
	}[field[string](told, "kind")]
	if known {
		f.Kind = kind
	}
	if errors.Is(err, store.ErrClosed) {
		f.Kind, f.Message = Freed, "what is asked was closed, sealed or aborted"
	}
	if kind == storeFull {
		f.Source, f.Size = field[string](told, "memory"), int(field[int64](told, "size"))
	}
}

func field[T any](told map[string]any, name string) (value T) {
	value, _ = told[name].(T)
	return value
}

// soon is a context that ends after so many milliseconds.
func soon(milliseconds int64) (context.Context, context.CancelFunc) {
	if milliseconds == 0 {
		c := deadline.Until(context.Background(), time.Now())
		return c, c.End
	}
	return within(context.Background(), atMost(milliseconds))
}

// atMost is how long within waits for so many milliseconds: more than there can be are no limit, as is -1.
func atMost(milliseconds int64) int {
	if milliseconds > math.MaxInt64/int64(time.Millisecond) {
		return -1
	}
	return int(milliseconds)
}

// Serve starts a server of the store in this process; 0 is what ServerOptions take it for.
func Serve(path, spill string, host, device int64) (token uint64, listens string, err error) {
	defer Guard(&err)
	s, err := listen(store.ServerOptions{Path: path, HostLimit: host, DeviceLimit: device, Spill: spill})
	if err != nil {
		return 0, "", err
	}
	return storeServers.keep(s), s.Path(), nil
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
func Connect(path string, milliseconds int64) (token uint64, found string, err error) {
	defer Guard(&err)
	ctx, end := soon(milliseconds)
	defer end()
	c, err := store.Connect(ctx, pathOf(path), Runtime)
	if err != nil {
		return 0, "", err
	}
	return storeClients.keep(c), c.Path(), nil
}

// LimitAnswers ends requests of a session that are not answered for so many milliseconds; -1 is no limit.
func LimitAnswers(token uint64, milliseconds int64) (err error) {
	defer Guard(&err)
	c, err := storeClients.get(token)
	if err != nil {
		return err
	}
	if milliseconds > math.MaxInt64/int64(time.Millisecond) {
		milliseconds = -1
	}
	return c.SetTimeout(time.Duration(max(milliseconds, 0)) * time.Millisecond)
}

// Disconnect ends it.
func Disconnect(token uint64) (err error) {
	defer Guard(&err)
	c, err := storeClients.take(token)
	if err != nil {
		return err
	}
	return c.Close()
}

// Creation is what an object of a C program's is to be.
type Creation struct {
	Of       *Descriptor // its element type, shape and place
	Flags    int
	Metadata []byte
}

func (c Creation) description() store.Description {
	return flagged(c.Flags, store.Description{
		Type: arrayiface.ElementType(c.Of.Element), Allocator: backends.Allocator(c.Of.Allocator), Device: int(c.Of.Device),
		Shape: append([]int(nil), c.Of.borrowedShape()...), Metadata: c.Metadata,
	})
}

// CreateObject makes an object, and describes its elements at result. The token is the builder's.
func CreateObject(client uint64, what Creation, result *Descriptor) (token uint64, id StoreID, err error) {
	defer Guard(&err)
	c, err := storeClients.get(client)
	if err != nil {
		return 0, id, err
	}
	described := what.description()
	if described.Allocator, described.Device, err = placeOfObject(described.Allocator, described.Device); err != nil {
		return 0, id, err
	}
	b, err := c.Create(context.Background(), described)
	if err != nil {
		return 0, id, err
	}
	result.Store(b.Array(), nil)
	return storeObjects.keep(&storeObject{builder: b}), b.ID(), nil
}

// SealObject seals an object, and describes the sealed elements at result unless that is nil. After an
// error the object is gone. The token is of the sealed object's lease from now on.
func SealObject(token uint64, result *Descriptor) (err error) {
	defer Guard(&err)
	o, b, err := takeBuilder(token)
	if err != nil {
		return err
	}
	sealed, err := b.Seal(context.Background())
	if err != nil {
		return err
	}
	o.object = sealed
	if result != nil {
		result.Store(sealed.Array(), nil)
	}
	return nil
}

// AbortObject gives an object up.
func AbortObject(token uint64) (err error) {
	defer Guard(&err)
	_, b, err := takeBuilder(token)
	if err != nil {
		return err
	}
	return b.Abort(context.Background())
}

// GetObject describes an object's elements at result; with milliseconds it is waited for. The token is
// of the lease.
func GetObject(client uint64, id StoreID, unsealed bool, milliseconds int64, result *Descriptor) (token uint64, err error) {
	defer Guard(&err)
	c, err := storeClients.get(client)
	if err != nil {
		return 0, err
	}
	o, err := getWithin(context.Background(), c, id, unsealed, atMost(milliseconds))
	if err != nil {
		return 0, err
	}
	result.Store(o.Array(), nil)
	return storeObjects.keep(&storeObject{object: o}), nil
}

// ObjectFlags is what describe tells: HAMR_STORE_EVICTABLE ….
func ObjectFlags(info store.Info) (flags int) {
	for flag, on := range map[int]bool{storeEvictable: info.Evictable, storePinned: info.Pinned, storeIsSealed: info.Sealed} {
		if on {
			flags |= flag
		}
	}
	return flags
}

// EndObject ends a lease, or a builder.
func EndObject(token uint64) { StoreRelease(token) }

// PutObject makes an object of a copy of elements, beside them.
func PutObject(client uint64, what Creation) (id StoreID, err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	c, err := storeClients.get(client)
	if err != nil {
		return id, err
	}
	source, err := what.Of.Array()
	if err != nil {
		return id, err
	}
	defer source.Close()
	described := what.description()
	described.Allocator, described.Device = StoreAllocator(source.Allocator(), source.Owner()), source.Owner()
	return c.Put(context.Background(), source, described)
}

// HowToShare is what a C program asks of gobuffer's Sharing.
type HowToShare struct{ ReadOnly, Copy, InPlace bool }

// SharedElements is what other processes open elements by. The descriptors are the caller's to close.
type SharedElements struct {
	Frame            []byte
	Descriptors      []int
	Copied, ReadOnly bool
}

// ShareElements makes it. stored is the token of the lease that the elements are of, or 0.
func ShareElements(d *Descriptor, how HowToShare, stored uint64) (made SharedElements, err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	source, err := d.Array()
	if err != nil {
		return made, err
	}
	defer source.Close()
	s := gobuffer.Sharing{ReadOnly: how.ReadOnly}
	switch {
	case how.Copy && how.InPlace:
		return made, &gobuffer.ArgumentError{Argument: "flags", Value: "both HAMR_SHARE_COPY and HAMR_SHARE_IN_PLACE", Accepted: "one of them"}
	case how.Copy:
		s.Copy = gobuffer.CopyAlways
	case how.InPlace:
		s.Copy = gobuffer.CopyNever
	}
	if stored != 0 {
		if s.Descriptor, err = storedDescriptor(stored); err != nil {
			return made, err
		}
	}
	shared, err := source.Share(s)
	if err != nil {
		return made, err
	}
	return SharedElements{shared.Frame(), shared.Descriptors(), shared.Copied(), shared.ReadOnly()}, nil
}

// OpenElements describes at result what ShareElements was called for.
func OpenElements(frame []byte, descriptors []int, result *Descriptor) (err error) {
	defer Guard(&err)
	shareEndings.now()
	a, err := Runtime.OpenShared(frame, descriptors)
	if err != nil {
		return err
	}
	result.Store(a, nil)
	return a.Close()
}
