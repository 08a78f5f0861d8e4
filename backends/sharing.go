package backends

// Sharer is implemented by backends whose memory other processes map by a file descriptor, which
// they are sent over a socket (SCM_RIGHTS) or inherit. Memory is there while any process has it
// mapped or has a descriptor of it, whoever made it and however that one has ended. Sizes are
// bytes, and multiples of SharedUnit. What NewShared and MapShared return is given back by
// UnmapShared, never by Free; it does not grow.
type Sharer interface {
	// Shares returns nil if memory of the device can be shared so, else an *UnavailableError that
	// says what is missing.
	Shares(device int) error
	// SharedUnit is what sizes of shared memory on the device are multiples of, in bytes.
	SharedUnit(device int) (int, error)
	// NewShared returns new memory, mapped for reading and writing, and a descriptor of it that is
	// closed on exec and is the caller's to close. Host memory is zero, other memory is not
	// initialised. It fails with an *OutOfMemoryError when, and only when, memory ran out.
	NewShared(device, size int) (at Region, descriptor int, err error)
	// MapShared maps the first size bytes of the memory that a descriptor is of, which stays the
	// caller's, and has no part in the mapping. Descriptors of anything else are refused, as are
	// those of less memory and of another device's where that can be told. Where readOnly is true
	// the device refuses to write there: a copy or fill fails, and a program's own access is the
	// end of its work, on the host SIGSEGV.
	MapShared(descriptor, device, size int, readOnly bool) (Region, error)
	// ProtectShared makes a mapping read-only where it is. Work with it must be over. After an
	// error it is as before.
	ProtectShared(at Region, size int) error
	// UnmapShared ends a mapping of NewShared or MapShared. Work with it that others do on the
	// device is waited for. After an error that is a *NotFreedError the mapping is there still.
	UnmapShared(at Region, size int) error
}

// Separator is implemented by Sharers that can make a mapping its process's own.
type Separator interface {
	// SeparateShared has what is written to a mapping from now on seen by nobody else, where
	// ProtectShared would refuse it. Work with it must be over. After an error it is as before.
	SeparateShared(at Region, size int) error
}

// PoolSharer is implemented by backends whose memory of a pool other processes import one
// allocation at a time: they are sent a descriptor of the pool once, and a few bytes for each. The
// backend's own users say that they want such pools, by a setting of its.
type PoolSharer interface {
	// SharedPool returns a descriptor of the pool that memory of allocator a on the device is of,
	// closed on exec, which is the caller's to close. The error is an *UnavailableError where the
	// memory is of no pool that others can import.
	SharedPool(a Allocator, device int) (descriptor int, err error)
	// ExportPooled returns what an allocation is imported by that holds at, where its pool is, and
	// the offset of at in it. It must not be freed while anybody has it imported, and not be
	// imported before the stream that it was taken on has come to it.
	ExportPooled(at Region) (exported []byte, offset int, err error)
	// ExportAllocated is ExportPooled of memory that Allocate has returned, which nobody need be asked the start of.
	ExportAllocated(at Region) (exported []byte, err error)
	// ImportPool returns another process's pool, by a descriptor that stays the caller's.
	ImportPool(descriptor, device int) (pool uintptr, err error)
	// ImportPooled returns an allocation of an imported pool, for reading and writing. It is given
	// back by ClosePooled, never by Free.
	ImportPooled(pool uintptr, exported []byte) (Region, error)
	// ClosePooled gives an imported allocation back. Work with it that others do on the device is
	// waited for. After an error that is a *NotFreedError it is there still.
	ClosePooled(at Region) error
	// ClosePool gives an imported pool back, whose allocations last until they are closed.
	ClosePool(pool uintptr) error
}

// AllocationSharer is implemented by backends whose memory, that of other libraries of the process
// included, other processes open one allocation at a time by a few bytes, while its maker lives and has
// not freed it. It cannot be opened by the process that has exported it.
type AllocationSharer interface {
	// ExportAllocation returns what the allocation that holds at is opened by, and the offset of at in
	// it. The error is an *UnavailableError where the memory is of no such allocation. It must not be
	// freed while anybody has it open; work on it is not waited for.
	ExportAllocation(at Region) (exported []byte, offset int, err error)
	// OpenAllocation returns another process's allocation, for reading and writing: the same memory
	// each time until it was closed as often. It is given back by CloseAllocation, never by Free.
	OpenAllocation(exported []byte, device int) (Region, error)
	// CloseAllocation gives it back. Work with it that others do on the device is waited for. After an
	// error that is a *NotFreedError it is there still.
	CloseAllocation(at Region) error
}

// DescriptorOwner is implemented by Sharers some of whose memory, of Backend.Allocate, is a descriptor's, which
// MapShared maps.
type DescriptorOwner interface {
	// DescriptorOf returns a descriptor of the memory that an allocation of the backend's starts at,
	// closed on exec, which is the caller's to close, and its size in bytes, a multiple of
	// SharedUnit. The error is an *UnavailableError where it has none.
	DescriptorOf(at Region) (descriptor, size int, err error)
}
