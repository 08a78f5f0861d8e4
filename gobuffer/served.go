package gobuffer

import "hamr/backends"

// served is what the Runtime needs to know of an allocator at every call. It is looked up once.
type served struct {
	backend   backends.Backend     // nil if no backend serves the allocator
	streams   backends.Streams     // nil if the backend has none
	converter backends.Converter   // nil if the backend is none
	batcher   backends.BatchCopier // likewise
	blocks    backends.BlockCopier // likewise
	atOnce    backends.AtOnce      // likewise
	locator   backends.Locator     // likewise
	allocator backends.Allocator
	kind      backends.MemoryKind
	onHost    bool            // the host reaches the memory
	freeWaits bool            // its Free waits for the device
	maps      bool            // the host can map the memory
	inOrder   bool            // it is taken and given back in the order of a stream
	grower    backends.Grower // nil if the memory cannot grow
	pauser    backends.Pauser // nil if the memory cannot be paused
	settled   bool            // its backend hands it out again, and it is given back when nothing uses it
}
