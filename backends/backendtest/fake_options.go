package backendtest

import (
	"time"

	"hamr/backends"
)

// FakeOptions says how a Fake behaves. The zero value is one CUDA-like device
// of 1 GiB.
type FakeOptions struct {
	Space   backends.Space // whose allocators to serve; zero means SpaceCUDA
	Devices int            // zero means one
	Memory  int64          // bytes of each device; zero means 1 GiB
	// Strict makes every copy late. Otherwise copies with pageable memory act as
	// CUDA's do: into it they are complete at return, and out of it the source
	// has been read at return.
	Strict bool
	// Manual leaves late work undone until somebody waits or polls for it, so
	// that a missing wait gives wrong data at every run. Otherwise it is done
	// after a random time of up to MaxDelay an item, zero meaning 1 ms.
	Manual   bool
	MaxDelay time.Duration
	// Still leaves Manual's work undone until somebody waits: to poll does not help.
	Still bool
	// Synchronous does all work at once, like a runtime without streams.
	Synchronous bool
	// FreeWaits makes Free of memory that is not stream-ordered wait for the
	// device first, as cuMemFree does in practice. Otherwise work that has yet to
	// run on freed memory is a violation.
	FreeWaits bool
	// Reuses makes device memory of every allocator stream-ordered, and work that has yet to
	// run on page-locked memory when it is freed a violation.
	Reuses bool
	// Grows is how many bytes of addresses each allocation of device memory has that is not stream-ordered. Up to there
	// it grows in place. Zero: none grows.
	Grows int
	// LateMemory makes it a violation to use stream-ordered memory before its stream has reached the allocation, as with
	// CUDA's pools.
	LateMemory bool
	// ReuseHandles gives the handles of destroyed streams and events to new ones at once, so that a stale handle means
	// another one.
	ReuseHandles bool
	// NoPeers keeps devices from reaching each other.
	NoPeers bool
	// NoConvert makes Convert refuse everything. Otherwise it rearranges elements,
	// but converts none.
	NoConvert bool
	// NoBlocks makes CopyBlocks refuse everything.
	NoBlocks bool
	// Mapped lets the host use device memory while it is mapped: a copy of it, which
	// comes back when it is unmapped. Work of the device's meanwhile is a violation.
	Mapped bool
	// Fine puts device memory where the host reaches it at any time, though facts do not say so.
	Fine bool
	// Knows reports whether a device reaches another runtime's memory, as the driver can that allocates it. Nil: none
	// does.
	Knows func(device int, at backends.Region) bool
	// Platforms is how many vendors' runtimes the devices belong to in turn. Devices of two runtimes know nothing of
	// each other. Zero means one.
	Platforms int
	// OneThread makes it a violation that memory is taken, given back, copied or filled on more
	// than one thread. It needs Synchronous.
	OneThread bool
	// NoSharing keeps memory from being shared by descriptor.
	NoSharing bool
	// Identities are the devices' UUIDs; nil makes them up from name and number.
	Identities []backends.UUID
	// Unavailable, when set, is why Probe fails.
	Unavailable string
}
