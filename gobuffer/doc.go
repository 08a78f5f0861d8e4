// Package gobuffer is the buffer core: it owns memory, knows where it is, moves
// it when somebody needs it elsewhere, and changes its contents wherever it
// lies.
//
// A Runtime is a set of backends and their counters. Memory is one allocation,
// counted by explicit references. Array is a growable container of elements of
// one type in some Memory. Buffer[T] is Array seen by Go's type system. A Handle
// is the answer to "where can code in that space touch this?": the memory
// itself where it is reachable, else a temporary.
//
// A Handle's temporary is the caller's alone. AccessMode, On and OnHost are for code that
// writes: they write temporaries back, and keep others from the elements until they end.
//
// Movements are enqueued on the stream of the buffer that is on a device, the one
// that is written where both are, and run after whatever the other buffer's
// stream holds. A Memory remembers, for each stream, that work of ours may still
// touch it, and what a stream held when its user left it: the host, other streams
// and the release of the memory wait for that, in every transfer mode. Other work
// of other libraries is known by the buffer's stream alone, the default one if it
// was given none.
//
// Memory that the host must map (backends.Mapper) is the host's while there is a Handle for
// it, and hamr works on it there; else it is the device's.
//
// Programs name their backends once, at the start:
//
//	gobuffer.Use(all.New()...)
//
// Go's garbage collector never frees device memory: what New, Copy and the
// accessors return is released by Close and Release.
package gobuffer
