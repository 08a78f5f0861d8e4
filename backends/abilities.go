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

// Reuser is implemented by backends that hand freed memory out again by themselves, in the
// order of streams, of allocators whose facts do not say that they are Ordered.
type Reuser interface {
	// Reuses reports whether Free of memory of allocator a takes effect on its stream, after
	// what is there already, and Allocate returns memory that other streams than the
	// request's may use only once that one has come to it. It never changes.
	Reuses(a Allocator) bool
}
