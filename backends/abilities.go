package backends

import (
	"encoding/hex"
	"time"
)

// Mapper is implemented by backends whose memory the host uses only while it is mapped: OpenCL's buffers and its
// coarse-grained shared memory. All other calls, such as Copy, work without a mapping. The core maps a whole
// allocation, once at a time, when it knows of no pending work on it. It enqueues nothing on the allocation until
// Unmap has returned.
type Mapper interface {
	// Maps reports whether memory of allocator a can be mapped: what Facts.Mapped says to those who ask no backend.
	Maps(a Allocator) bool
	// Map returns where the host finds size bytes of one allocation, from at on, while they are mapped. The place may be
	// another one each time. The host may write there only if write is true. Map returns when the host can begin. All
	// work on these bytes that the core does not know of must be over. While it is mapped, the place is ordinary host
	// memory, also for Copy.
	Map(at Region, size int, write bool) (host Address, err error)
	// Unmap ends what Map began with the same arguments and result. What is enqueued after
	// its return finds what the host has written.
	Unmap(at Region, host Address) error
}

// NativeHandles is implemented by backends whose allocators have opaque addresses, see Facts.Opaque.
type NativeHandles interface {
	// NativeHandle returns the runtime's handle, such as a cl_mem, of the allocation that holds at, and the offset of at
	// in it. The backend owns the handle: it lasts until Free, and no reference is added.
	NativeHandle(at Region) (handle uintptr, offset int, err error)
}

// EventAdopter is implemented by backends whose runtimes hand out an event with each piece of work, as OpenCL and
// SYCL do: a producer of data hands on the event, and names no queue.
type EventAdopter interface {
	// AdoptEvent returns an event that stands for the same as a vendor's event of the device, such as a cl_event. The
	// owner of that may release it at once. The caller destroys the result, which is never recorded.
	AdoptEvent(device int, handle uintptr) (Event, error)
}

// LegacyStreams is implemented by backends that have Streams and a default stream which some other streams wait for,
// and which waits for them.
type LegacyStreams interface {
	// NewLegacyStream is NewStream for a stream that takes turns with the device's default one.
	NewLegacyStream(device int) (Stream, error)
}

// Timer is implemented by backends that have Streams, and events that keep the time at which they were reached. In
// all else these are events like others.
type Timer interface {
	// NewTimedEvent is NewEvent for an event that keeps the time, which may cost more.
	NewTimedEvent(device int) (Event, error)
	// Elapsed returns how much later the device reached the latest record of to than that of
	// from, less than zero if it was earlier. Both are events of the device. The error is
	// ErrUntimed, ErrNotRecorded or ErrNotDone where one of them has no time, or none yet.
	Elapsed(device int, from, to Event) (time.Duration, error)
}

// UUID identifies a physical device, or a part of one: 16 bytes that all runtimes of a vendor report alike for it.
type UUID [16]byte

// String writes the bytes in groups, as in "00010203-0405-0607-0809-0a0b0c0d0e0f".
func (u UUID) String() string {
	text := hex.EncodeToString(u[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// Identified is implemented by backends that can tell which physical device each of theirs
// is, so that it can be found in another runtime.
type Identified interface {
	// Identity returns the device's UUID. The error is errors.ErrUnsupported where the runtime cannot tell.
	Identity(device int) (UUID, error)
}

// Reacher is implemented by backends that can tell what other memory their devices reach: managed memory of another
// device, and memory of another runtime whose Facts.Reach has the backend's space. Without it, each device of a
// backend reaches the backend's managed memory, and memory of other runtimes on the device with the same UUID.
type Reacher interface {
	// Reaches reports whether code on a device can use the memory at an address as it is, at any
	// time. It is not asked of memory of the device's own.
	Reaches(device int, at Region) (bool, error)
}

// HostReacher is implemented by backends that have memory which the host can use at any time though
// the facts of its allocator do not say so, as they are those of all devices.
type HostReacher interface {
	// HostReaches reports whether the host can use the memory as it is, when no work on it is
	// pending: its own code, and another runtime's that takes it for host memory.
	HostReaches(at Region) bool
}

// HostReader is implemented by backends whose devices may take host memory that Locate finds page-locked for ordinary
// memory, since somebody has locked it for another device.
type HostReader interface {
	// ReadsInOrder reports whether a copy on a stream of a device reads such memory in the order of the stream. Else it
	// may read it when it is enqueued.
	ReadsInOrder(at Region, size, device int, stream Stream) (bool, error)
}

// Contexts is implemented by backends whose memory belongs to contexts, of which a device may have several. Such a
// backend works in one context on each device. Location.Context tells memory of another context. That is memory of
// the same device and can be used like the backend's own, but its owner's work on a default stream is not ordered
// with work here.
type Contexts interface {
	// Context returns the handle of the context that the backend works in on a device.
	Context(device int) (uintptr, error)
	// SynchronizeContext blocks until all that was enqueued in a context is done.
	SynchronizeContext(context uintptr) error
}

// Reuser is implemented by backends that reuse freed memory of allocators whose facts do not say that they are Ordered.
type Reuser interface {
	// Reuses reports whether Free of memory of allocator a takes effect in stream order, and Allocate returns memory
	// that other streams than the request's may use only after that stream has reached it. Page-locked memory, to which
	// the host writes without a stream, is given back when nothing uses it any more. Work that the core does not know of
	// is waited for only if Memory.Leave says so. The result never changes.
	Reuses(a Allocator) bool
}

// BatchCopier is implemented by backends that make many copies in fewer steps than a Copy of each takes.
type BatchCopier interface {
	// CopyBatch is Copy of each, in stream order, and in any order among themselves. The targets are memory of one kind
	// and one device, and so are the sources. No target shares bytes with another one, or with a source. After an error
	// some copies may have begun. Those that are enqueued stay in the stream.
	CopyBatch(copies []BatchCopy, stream Stream) (Progress, error)
}

// BatchCopy is the arguments of Copy, or of CopyUntil: a batch has one Stop, or none.
type BatchCopy struct {
	Dst, Src Region
	Size     int
	Stop     *Stop
}

// Stopper is implemented by backends whose Copy may take long and can be ended before its time.
type Stopper interface {
	// CopyUntil is Copy until stop asks. Then the error is ErrStopped, and ordinary host memory is neither read nor
	// written any more. What is enqueued stays in the stream.
	CopyUntil(stop *Stop, dst, src Region, size int, stream Stream) (Progress, error)
}

// Grower is implemented by backends that can make an allocation larger without copying it. The core calls one method
// at a time for an allocation, and none during Free. Its Free waits for the device: see FreeWaiter.
type Grower interface {
	// Grows reports whether memory of allocator a can grow. It never changes.
	Grows(a Allocator) bool
	// Grow makes the allocation at at, which has had bytes, at least size bytes large. It returns the new size, which
	// Free takes. The address and the elements stay. The bytes behind them are not initialised, and every stream can use
	// them at once. Pending work on the elements goes on. After an error all is as before. The error is
	// errors.ErrUnsupported where the addresses behind the allocation are taken.
	Grow(at Region, had, size int) (has int, err error)
	// Relocate returns a second allocation of at least size bytes. Its first had bytes are those of the allocation at
	// at: the same memory at one more address. Later work at one address reads what was written at the other. Each is
	// freed separately, and the memory goes with the last one. After an error all is as before.
	Relocate(at Region, had, size int) (to Address, has int, err error)
}

// DefaultLimit stands for the limit that a pool has at the start, NoLimit for none.
const (
	NoLimit      = -1
	DefaultLimit = -2
)

// PoolStatistics is what a pool holds, in bytes, and how often it had what was asked for.
type PoolStatistics struct {
	Allocator    Allocator // whose memory it is
	Device       int
	Limit        int64 // NoLimit: there is none
	Current      int64 // in use; zero of ordinary host memory, of which only what is kept is counted
	Peak         int64 // taken from the runtime at once, at most; of ordinary host memory, kept
	Cached       int64 // kept for reuse
	LargestFree  int64 // of that, side by side
	Hits, Misses int64
}

// Pooler is implemented by backends that keep freed memory for reuse and can tell how much.
type Pooler interface {
	// Pools returns the figures of the pools that are in use, or limited. Unlike other methods
	// it may be called before Probe.
	Pools() []PoolStatistics
	// LimitPool limits how many bytes are taken from the runtime for allocator a on a device that exists, by all its pools
	// there; of ordinary host memory, how many are kept for reuse. More fails with an *OutOfMemoryError. What is kept
	// beyond the limit is given back before it returns.
	LimitPool(a Allocator, device int, bytes int64) error
}

// AtOnce is implemented by backends that can often hand out memory and take it back without waiting: neither for the
// driver nor for a thread that waits for the driver. Callers that hold a lock which such a thread may want, such as
// Python's, then need not release it.
type AtOnce interface {
	// AllocateAtOnce is Allocate. Where that may wait or fail, it does nothing, and ok is false.
	AllocateAtOnce(r Request) (at Address, ok bool)
	// FreeAtOnce is Free, likewise.
	FreeAtOnce(at Region, size int, s Stream) (ok bool)
}

// StreamKeeper is implemented by backends whose pools query streams of other owners, once they know that the stream
// lasts.
type StreamKeeper interface {
	// KeepStream tells that a stream does not end before DropStream.
	KeepStream(device int, s Stream) error
	// DropStream tells that a stream may end. Nobody may give memory back in its order afterwards. It does nothing for a
	// stream that KeepStream does not know.
	DropStream(device int, s Stream) error
	// Kept reports whether a stream does not end, or not before the pools are told.
	Kept(s Stream) bool
	// Collect returns a stream of the backend's own that runs after all work that others hold now. It does not use these
	// later. It does not wait. The error is ErrCapturing for a stream that is captured into a graph.
	Collect(device int, others ...Stream) (Stream, error)
}
