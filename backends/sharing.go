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
