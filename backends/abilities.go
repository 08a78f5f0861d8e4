package backends

import (
	"encoding/hex"
	"time"
)

// Mapper is implemented by backends whose memory the host uses only while it is mapped:
// OpenCL's buffers and its coarse-grained shared memory. Everything else, Copy above all,
// works without. The core maps what it was given or has allocated as a whole, once at a
// time, when no work is pending that it knows of, and enqueues nothing on it until Unmap
// has returned.
type Mapper interface {
	// Maps reports whether memory of allocator a can be mapped: what Facts.Mapped says to
	// those who ask no backend.
	Maps(a Allocator) bool
	// Map returns where the host finds size bytes of one allocation, from at on, for as long
	// as they are mapped: another place each time, perhaps. The host may write there only
	// if write says so. It returns when the host can begin.
	// Work that nobody has told the core of, on any of the bytes, must be over. Meanwhile
	// the place is host memory like any other, which Copy takes as such, too.
	Map(at Region, size int, write bool) (host Address, err error)
	// Unmap ends what Map began with the same arguments and result. What is enqueued after
	// its return finds what the host has written.
	Unmap(at Region, host Address) error
}

// NativeHandles is implemented by backends whose allocators have opaque addresses, see
// Facts.Opaque.
type NativeHandles interface {
	// NativeHandle returns what the runtime knows the allocation by that holds at, as a
	// cl_mem, and the offset of at in it. The handle is the backend's: it lasts until Free,
	// without a reference.
	NativeHandle(at Region) (handle uintptr, offset int, err error)
}

// EventAdopter is implemented by backends whose runtimes hand out an event with each piece of
// work, as OpenCL and SYCL do: who produces data has that, and names no queue.
type EventAdopter interface {
	// AdoptEvent returns an event that stands for what the vendor's own event of the device
	// does, as a cl_event, whose owner may let go of that at once. The caller destroys it; it is
	// never recorded.
	AdoptEvent(device int, handle uintptr) (Event, error)
}

// LegacyStreams is implemented by backends that have Streams, and a default stream that waits for
// the work of some of the others, as they do for its.
type LegacyStreams interface {
	// NewLegacyStream is NewStream for a stream that takes turns with the device's default one.
	NewLegacyStream(device int) (Stream, error)
}

// Timer is implemented by backends that have Streams, and events that keep the time at which
// they were reached. Everything else is done to these events as to any other.
type Timer interface {
	// NewTimedEvent is NewEvent for an event that keeps the time, which may cost more.
	NewTimedEvent(device int) (Event, error)
	// Elapsed returns how much later the device reached the latest record of to than that of
	// from, less than zero if it was earlier. Both are events of the device. The error is
	// ErrUntimed, ErrNotRecorded or ErrNotDone where one of them has no time, or none yet.
	Elapsed(device int, from, to Event) (time.Duration, error)
}

// UUID says which physical device, or part of one, it is: the 16 bytes that vendors' runtimes give
// the same device alike.
type UUID [16]byte

// String writes the bytes in groups, as in "00010203-0405-0607-0809-0a0b0c0d0e0f".
func (u UUID) String() string {
	text := hex.EncodeToString(u[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// Identified is implemented by backends that can tell which physical device each of theirs
// is, so that it can be found in another runtime.
type Identified interface {
	// Identity returns the device's UUID. The error is errors.ErrUnsupported where the
	// runtime cannot tell.
	Identity(device int) (UUID, error)
}

// Reacher is implemented by backends that can tell what memory their devices reach, beside what was
// taken on them: managed memory of another device of theirs, and memory of another runtime's whose
// Facts.Reach has the backend's space. A backend without it reaches its managed memory from each of
// its devices and, of other runtimes' memory, what is on a device that both have by its UUID.
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

// Contexts is implemented by backends whose memory belongs to contexts, of which a device
// may have several. Such a backend works in one of them on each device. Memory of another
// one, which Location.Context tells, is the same device's and can be used as its own is,
// but what the owner does there on a default stream is ordered with nothing here.
type Contexts interface {
	// Context returns the handle of the context that the backend works in on a device.
	Context(device int) (uintptr, error)
	// SynchronizeContext blocks until all that was enqueued in a context is done.
	SynchronizeContext(context uintptr) error
}

// Reuser is implemented by backends that hand freed memory out again by themselves, of
// allocators whose facts do not say that they are Ordered.
type Reuser interface {
	// Reuses reports whether Free of memory of allocator a takes effect on its stream, after
	// what is there already, and Allocate returns memory that other streams than the
	// request's may use only once that one has come to it. Page-locked memory, which the
	// host writes to without a stream, is given back when nothing uses it any more: what
	// nobody has told the core of waits at Memory.Leave's word only. It never changes.
	Reuses(a Allocator) bool
}

// BatchCopier is implemented by backends that make many copies in fewer steps than a Copy of
// each takes.
type BatchCopier interface {
	// CopyBatch is Copy of each, in stream order, and in any order among themselves. The targets
	// are memory of one kind and one device, and so are the sources. No target shares bytes
	// with another one, or with a source. After an error some copies may have been begun: what is
	// enqueued of them, the stream has.
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
	// CopyUntil is Copy until stop asks: then the error is ErrStopped, ordinary host memory is
	// neither read nor written any more, and what is enqueued, the stream has.
	CopyUntil(stop *Stop, dst, src Region, size int, stream Stream) (Progress, error)
}

// Grower is implemented by backends that can make an allocation larger without copying it.
// Of one allocation, the core calls one method at a time, and not during Free. Its Free waits
// for the device: see FreeWaiter.
type Grower interface {
	// Grows reports whether memory of allocator a can grow. It never changes.
	Grows(a Allocator) bool
	// Grow makes the allocation at at, which has had bytes, one of at least size, and returns
	// how many it has: what Free is told. Its address and its elements stay. What is behind
	// them is not initialised and can be used at once, on every stream. Work on the elements
	// may be pending, and goes on. After an error all is as before. The error is
	// errors.ErrUnsupported where the addresses behind the allocation are somebody else's.
	Grow(at Region, had, size int) (has int, err error)
	// Relocate returns another allocation of at least size bytes, of which the first are those
	// of the allocation at at, which has had: the same memory at one more address. What is
	// written at one is read at the other by work that runs after it. Each is freed for
	// itself, and the memory goes with the last. After an error all is as before.
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
	// LimitPool limits how many bytes are taken from the runtime for allocator a on a device
	// that exists, by all its pools there; of ordinary host memory, how many are kept for
	// reuse. More fails with an *OutOfMemoryError. What is kept beyond the limit is given
	// back before it returns.
	LimitPool(a Allocator, device int, bytes int64) error
}

// AtOnce is implemented by backends that often have memory to hand out, and take it back, without
// waiting for anybody: neither for the driver nor for a thread that the driver may keep waiting.
// Callers with a lock that such a thread may want, as Python's, then need not let go of it.
type AtOnce interface {
	// AllocateAtOnce is Allocate; where that may wait or fail ok is false, and nothing has happened.
	AllocateAtOnce(r Request) (at Address, ok bool)
	// FreeAtOnce is Free, likewise.
	FreeAtOnce(at Region, size int, s Stream) (ok bool)
}

// StreamKeeper is implemented by backends whose pools may ask a stream of somebody else's at any time how
// far it is, once they know that it stays.
type StreamKeeper interface {
	// KeepStream tells that a stream does not end before DropStream.
	KeepStream(device int, s Stream) error
	// DropStream tells that a stream may end. Nobody may give memory back in its order afterwards. Of a
	// stream that KeepStream was not told of it does nothing.
	DropStream(device int, s Stream) error
	// Kept reports whether a stream does not end, or not before the pools are told.
	Kept(s Stream) bool
	// Collect returns a stream of the backend's own that runs after what others hold now, of which nothing
	// is asked later. It waits for nobody; the error is ErrCapturing for one that is captured into a graph.
	Collect(device int, others ...Stream) (Stream, error)
}
