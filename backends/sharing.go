package backends

// Sharer is implemented by backends whose memory other processes map by a file descriptor, which they are sent over a
// socket (SCM_RIGHTS) or inherit. Memory lasts while any process has it mapped or has a descriptor of it, even after
// the process that made it has ended. Sizes are bytes, and multiples of SharedUnit. What NewShared and MapShared
// return is given back by UnmapShared, never by Free; it does not grow.
type Sharer interface {
	// Shares returns nil if memory of the device can be shared in this way, otherwise an *UnavailableError that says
	// what is missing.
	Shares(device int) error
	// SharedUnit is what sizes of shared memory on the device are multiples of, in bytes.
	SharedUnit(device int) (int, error)
	// NewShared returns new memory, mapped for reading and writing, and a descriptor of it that is
	// closed on exec and is the caller's to close. Host memory is zero, other memory is not
	// initialised. It fails with an *OutOfMemoryError when, and only when, memory ran out.
	NewShared(device, size int) (at Region, descriptor int, err error)
	// MapShared maps the first size bytes of a descriptor's memory. The descriptor stays the caller's, and the mapping
	// does not need it. Descriptors of something else or of less memory are refused, and those of another device's
	// memory where that can be told. If readOnly is true, the device refuses to write there: a copy or fill fails, and a
	// write by a program's own code ends its work, on the host by SIGSEGV.
	MapShared(descriptor, device, size int, readOnly bool) (Region, error)
	// ProtectShared makes a mapping read-only where it is. Work with it must be over. After an
	// error it is as before.
	ProtectShared(at Region, size int) error
	// UnmapShared ends a mapping of NewShared or MapShared. It waits for the device's other work with it. After a
	// *NotFreedError the mapping is still there.
	UnmapShared(at Region, size int) error
}

// Separator is implemented by Sharers that can make a mapping its process's own.
type Separator interface {
	// MapSeparate is MapShared for reading and writing, also of a descriptor that may not be written to. Nobody else
	// sees what is written, and memory is taken only for that.
	MapSeparate(descriptor, device, size int) (Region, error)
	// SeparateShared hides later writes to a mapping from all others, where ProtectShared would refuse them. Work with
	// it must be over. After an error it is as before.
	SeparateShared(at Region, size int) error
}

// PoolSharer is implemented by backends with pools from which other processes import one allocation at a time. They
// are sent a descriptor of the pool once, and a few bytes for each allocation. A setting of the backend turns such
// pools on.
type PoolSharer interface {
	// SharedPool returns a descriptor of the pool that memory of allocator a on the device is of,
	// closed on exec, which is the caller's to close. The error is an *UnavailableError where the
	// memory is of no pool that others can import.
	SharedPool(a Allocator, device int) (descriptor int, err error)
	// ExportPooled returns the bytes by which the allocation that holds at is imported where its pool is, and the offset
	// of at in it. The allocation must not be freed while anybody has it imported, and not be imported before its stream
	// has reached it.
	ExportPooled(at Region) (exported []byte, offset int, err error)
	// ExportAllocated is ExportPooled for an address that Allocate returned, so that the start of the allocation is
	// known.
	ExportAllocated(at Region) (exported []byte, err error)
	// ImportPool returns another process's pool, by a descriptor that stays the caller's.
	ImportPool(descriptor, device int) (pool uintptr, err error)
	// ImportPooled returns an allocation of an imported pool, for reading and writing. It is given
	// back by ClosePooled, never by Free.
	ImportPooled(pool uintptr, exported []byte) (Region, error)
	// ClosePooled gives an imported allocation back. It waits for the device's other work with it. After a
	// *NotFreedError the allocation is still there.
	ClosePooled(at Region) error
	// ClosePool gives an imported pool back. Its allocations last until they are closed.
	ClosePool(pool uintptr) error
}

// AllocationSharer is implemented by backends whose memory other processes open one allocation at a time by a few
// bytes, also memory of other libraries in the process. It lasts until its owner frees it or ends. The process that
// exported it cannot open it.
type AllocationSharer interface {
	// ExportAllocation returns the bytes by which the allocation that holds at is opened, and the offset of at in it.
	// The error is an *UnavailableError where the memory is of no such allocation. The allocation must not be freed
	// while anybody has it open. Work on it is not waited for.
	ExportAllocation(at Region) (exported []byte, offset int, err error)
	// OpenAllocation returns another process's allocation, for reading and writing. It returns the same memory until
	// that was closed as often as it was opened. CloseAllocation gives it back, never Free.
	OpenAllocation(exported []byte, device int) (Region, error)
	// CloseAllocation gives it back. It waits for the device's other work with it. After a *NotFreedError the allocation
	// is still there.
	CloseAllocation(at Region) error
}

// DescriptorOwner is implemented by Sharers that have a descriptor, which MapShared maps, for some memory of
// Backend.Allocate.
type DescriptorOwner interface {
	// DescriptorOf returns a descriptor of the memory that an allocation of the backend's starts at,
	// closed on exec, which is the caller's to close, and its size in bytes, a multiple of
	// SharedUnit. The error is an *UnavailableError where it has none.
	DescriptorOf(at Region) (descriptor, size int, err error)
}
