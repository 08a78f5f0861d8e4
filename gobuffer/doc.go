// Package gobuffer is the buffer core: it owns memory, knows where it is, moves it when somebody needs it elsewhere,
// and changes its contents wherever it lies.
//
// # The first buffer
//
// A program names its backends once, at its start, and makes buffers of any element type, on the host or on a device:
//
//	err := gobuffer.Use(all.New()...) // of hamr/backends/all
//	…
//	b, err := gobuffer.New[float64](backends.Malloc, 1024)
//	if err != nil {
//		return err
//	}
//	defer b.Close()
//	err = b.OnHost(ctx, gobuffer.ReadWrite, func(values []float64) error {
//		values[0] = 1 // the buffer's afterwards, wherever it is
//		return nil
//	})
//
// No vendor's library is linked or loaded until its memory is first asked for; where it is absent, that is the error:
// [backends.ErrUnavailable]. [Runtime.DeviceAllocator] names memory of the preferred device that there is, or of the
// host. The folder examples/heat is a module to start from.
//
// # What there is
//
// A [Runtime] is a set of backends and their counters. [Memory] is one allocation, counted by explicit references.
// [Array] is a growable container of elements of one type in some Memory. [Buffer] is Array seen by Go's type system. A
// [Handle] is the answer to "where can code in that space touch this?": the memory itself where it is reachable, else a
// temporary.
//
// A Handle's temporary is the caller's alone. AccessMode, On and OnHost are for code that writes: they write
// temporaries back, and keep others from the elements until they end.
//
// # Who owns what
//
// Go's garbage collector never frees the memory of buffers: what [New], [From], [Adopt], Copy and the makers of views
// return is released by Close, what the accessors return by Release. Memory that has several users, as a buffer, its
// views and handles, is given back by the last one of them, in the order of its stream. Nobody may use a slice, an
// address or a handle's elements after that.
//
// [From] copies a slice, and [Adopt] shares it: it pins the array behind it, for as long as the buffer or anybody else
// has it. [Runtime.Adopt] does so for memory that somebody else owns, [Runtime.TakeOver] for memory that is to be freed
// here.
//
// Methods that only read may run at the same time as each other. Whoever changes a buffer must be alone; Handles,
// Memory and Runtimes are safe for concurrent use.
//
// # Streams
//
// Movements are enqueued on the stream of the buffer that is on a device, the one that is written where both are, and
// run after whatever the other buffer's stream holds. A Memory remembers, for each stream, that work of ours may still
// touch it, and what a stream held when its user left it: the host, other streams and the release of the memory wait
// for that, in every transfer mode. Other work of other libraries is known by the buffer's stream alone, the default
// one if it was given none.
//
// A stream is the vendor's handle, as a cudaStream_t, in [Options] or by SetStream; hamr makes none and ends none. It
// must exist for as long as memory that was used on it. A kernel that the program launches goes on [Handle.Stream],
// where all work that came before is ordered; Before orders any other stream so, and Synchronize waits.
//
// Memory that the host must map (backends.Mapper) is the host's while there is a Handle for it, and hamr works on it
// there; else it is the device's.
//
// # Errors
//
// A bad argument is an [*ArgumentError]. For errors.Is there are [ErrFreed] after Close or Release, [ErrZero] of what
// no constructor made, [ErrInUse] while somebody writes the elements, [ErrMapped], [ErrNoBackends] and
// [backends.ErrUnavailable]; a device without memory is a *backends.OutOfMemoryError, and what else a runtime reports a
// *backends.DeviceError. After an error a buffer is as it was.
//
// # cgo
//
// Backends call the C library and vendors' libraries by cgo: a program that imports hamr/backends/all, or one of the
// backends, needs CGO_ENABLED=1 and a C compiler to build, and the compiler says so without them. This package itself,
// hamr/arrayiface and hamr/backends, which holds what a backend must be able to do, build with CGO_ENABLED=0, for
// programs that have backends of their own.
package gobuffer
