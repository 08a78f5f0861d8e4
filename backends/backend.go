package backends

// HostDevice is the owner of memory that belongs to no device, and the device number that the host backend takes.
const HostDevice = -1

// Address is a place in the address space of an allocation's owner. It is a
// plain number: most of them must not be dereferenced by the host.
type Address uintptr

// Stream is a vendor's stream or queue handle. Zero is the backend's default stream; what that means is the backend's
// own business, and Streams.Resolve turns it into one that any thread may name.
type Stream uintptr

// EveryStream stands for all streams of a device, other libraries' included, where a method says that it may.
const EveryStream = ^Stream(0)

// Event is a vendor's event handle. Zero is no event.
type Event uintptr

// Region is a run of bytes together with who owns it, so that a backend can
// tell which way a copy goes without asking its driver.
type Region struct {
	Address   Address
	Allocator Allocator
	Device    int // HostDevice for host memory
}

// Request says what Allocate should make.
type Request struct {
	Allocator Allocator
	Device    int // which device; HostDevice for host memory
	Size      int // bytes, more than zero
	Stream    Stream
	Zero      bool // the memory must read as zeros
	Tag       Tag  // what it is paused by, see Pauser
}

// Progress is a bit set of what a copy may still do after Copy has returned.
type Progress uint8

// What may be left to do.
const (
	// Complete: nothing.
	Complete Progress = 0
	// Reading: the source may still be read, so it must neither change nor be freed.
	Reading Progress = 1
	// Writing: the target is not complete yet.
	Writing Progress = 2
)

// Backend is a runtime that owns memory. Methods are safe for concurrent use by any thread: where a runtime must be
// called on one thread, the backend has that thread: see backends/internal/worker. No method leaves another current
// device to the caller. Sizes and counts are checked by the core: they are positive and in range.
type Backend interface {
	// Name is how users and Allocator.Backend call it: "host", "cuda".
	Name() string
	// Probe loads and initialises the runtime at its first call and remembers the answer: nil, or an *UnavailableError
	// that says what was looked for. In a child that was forked after the runtime was in use, and in which the runtime
	// does not work, it is a *ForkedError: backends/internal/forked can tell where the runtime cannot. No other method
	// may be called before Probe has returned nil.
	Probe() error
	// DeviceCount returns how many devices there are; zero for the host. A runtime of several
	// platforms has the devices of all, one after the other.
	DeviceCount() (int, error)
	// Allocate returns memory aligned to at least 16 bytes. It fails with an
	// *OutOfMemoryError when, and only when, memory ran out.
	Allocate(r Request) (Address, error)
	// Free gives back what Allocate returned, exactly once, in stream order where the allocator has one. size is what
	// was asked for, or zero for memory that another library allocated by the same allocator. After an error nobody
	// frees the memory again, unless the error is a *NotFreedError.
	Free(at Region, size int, stream Stream) error
	// Copy moves size bytes from src to dst in stream order. At least one of them belongs to this backend; the other may
	// be host memory. The stream is one of dst's device or, where the host reaches dst, of src's. It may return before the
	// copy is done, and says what may still happen; a backend without streams returns Complete. The regions may overlap
	// only in host memory. Between devices that know nothing of each other, as those of two platforms, the backend goes by
	// way of the host.
	Copy(dst, src Region, size int, stream Stream) (Progress, error)
	// Fill repeats pattern (1 to 16 bytes) count times from dst on, in stream order.
	Fill(dst Region, pattern []byte, count int, stream Stream) error
}

// Streams is implemented by backends whose work is asynchronous.
//
// What a call enqueues on a stream runs after all earlier work on the stream and before all later work, hamr's or
// another library's. Record, Synchronize and Idle are about all earlier work, too. A runtime's own queues need not
// keep an order, as OpenCL's and SYCL's may not. There a backend puts a barrier before and behind what it enqueues,
// and records an event behind a barrier. Only the work of other libraries on such a queue has the order that they
// have given it.
type Streams interface {
	// Resolve turns a per-thread or default stream into a handle that means the same from every thread. For other methods
	// such a stream is that of the thread that calls them.
	Resolve(device int, s Stream) (Stream, error)
	// StreamDevice returns the device of a stream, or HostDevice for a handle that means another stream on every device,
	// such as the default one's. The error is ErrNoStream for small numbers that stand for nothing. A handle whose
	// stream has ended may pass, since vendors' runtimes leave undefined what they do with one.
	StreamDevice(s Stream) (int, error)
	NewStream(device int) (Stream, error)
	DestroyStream(device int, s Stream) error
	// Synchronize blocks until all work on s is done. The core calls it without locks held; implementations return within
	// 50 ms slices to let signals in only if they document so.
	Synchronize(device int, s Stream) error
	// Idle reports whether all work on s is done, without waiting. The error is ErrCapturing where s is the default
	// stream and cannot be queried while another stream is captured into a graph. It disturbs no capture.
	Idle(device int, s Stream) (bool, error)
	NewEvent(device int) (Event, error)
	DestroyEvent(device int, e Event) error
	// Record makes e stand for the work on s so far.
	Record(device int, e Event, s Stream) error
	// Wait makes later work on s wait for e, which may be of another device, without blocking
	// the caller, save where the two devices' runtimes know nothing of each other.
	Wait(device int, s Stream, e Event) error
	// Done reports whether the work that e stands for is done.
	Done(device int, e Event) (bool, error)
	SynchronizeEvent(device int, e Event) error
}

// Supporter is implemented by backends not all of whose devices have all of their allocators.
type Supporter interface {
	// Supports returns nil if a device has an allocator of the backend's, else an
	// *UnavailableError that says what is missing.
	Supports(a Allocator, device int) error
}

// HostDevices is implemented by backends whose devices may be the host's own processors, such as OpenMP's where there
// is no other device. A program runs there as on any device, and gains nothing.
type HostDevices interface {
	// OnHost reports whether a device is the host. New memory for "the device" is not taken there.
	OnHost(device int) bool
}

// ProcessorDevices is implemented by backends whose devices may be processors such as the host's, which
// their runtimes serve as devices of their own, with memory and queues: OpenCL's and SYCL's.
type ProcessorDevices interface {
	// OnProcessor reports whether the runtime calls a device a CPU. Work goes there only if a user names it.
	OnProcessor(device int) bool
}

// FreeWaiter is implemented by backends whose Free waits for the device before it takes memory away. Before it frees
// memory of other backends, the core waits for all work that it knows of, except where memory is freed in stream order.
type FreeWaiter interface {
	// FreeWaits reports whether Free of memory of allocator a returns only after all
	// work on the device that was enqueued before, other libraries' included.
	FreeWaits(a Allocator) bool
}

// DeviceSynchronizer is implemented by backends that can wait for all work of a device, also on streams whose handles
// are gone.
type DeviceSynchronizer interface {
	// SynchronizeDevice blocks until all work on the device is done, also that of other libraries in the process. After
	// an error the work may not be done.
	SynchronizeDevice(device int) error
}

// Location is what a runtime knows of an address.
type Location struct {
	Region          // Allocator is None where the runtime does not know the memory
	Base    Address // where the allocation starts; zero if the runtime cannot tell
	Size    int     // bytes in it; zero if the runtime cannot tell
	Context uintptr // the vendor's handle of the one context that may use it; zero if all may, or if not known
}

// Locator is implemented by backends that can tell whose memory an address is.
type Locator interface {
	// Locate returns the allocator and device of at. Memory that the runtime does not know yields None without an error.
	Locate(at Address) (Location, error)
}

// Current is implemented by backends whose runtime has a current device on each OS thread, which other libraries share.
// Its methods are about the calling thread: Go code locks the goroutine to it.
type Current interface {
	// CurrentDevice returns the current device; 0 where none was chosen yet.
	CurrentDevice() (int, error)
	// Activate makes device current and returns what was before, for Restore.
	Activate(device int) (before uintptr, err error)
	Restore(before uintptr) error
}

// ElementKind says how the bits of an element are read.
type ElementKind uint8

// The kinds of element.
const (
	Opaque ElementKind = iota // bytes that are moved, never converted
	Boolean
	Signed
	Unsigned
	Float         // IEEE 754 of 2, 4 or 8 bytes
	BrainFloat    // the upper half of an IEEE 754 single
	ComplexNumber // two floats
)

// Element is what one element of an array is.
type Element struct {
	Kind ElementKind
	Size int // bytes, 1 to 16
}

// Strided is an array whose elements lie apart.
type Strided struct {
	Region  // Address is that of element zero, which need not be the lowest
	Element Element
	Shape   []int
	Strides []int // bytes; may be zero, negative and unaligned
}

// Converter is implemented by backends whose devices can convert and rearrange elements by themselves.
type Converter interface {
	// Converts reports whether Convert would succeed, for callers that must first bring the elements to where the device
	// reaches them. It enqueues nothing. An address of zero stands for any that is aligned as Allocate's are.
	Converts(dst, src Strided, stream Stream) bool
	// Convert makes dst's elements those of src, which has the same shape, converted by the rules of
	// gobuffer/internal/elements, in the order of a stream of dst's device or, where the host reaches dst, of src's.
	// That device reaches both. No two elements of dst share bytes, and none shares bytes with src. Where the device
	// cannot do it, Convert enqueues nothing and returns errors.ErrUnsupported.
	Convert(dst, src Strided, stream Stream) error
}

// Peers is implemented by backends with several devices that can reach each other.
type Peers interface {
	CanAccess(from, to int) (bool, error)
	// Enable lets device from reach memory of device to. To enable it again is no error, and counts.
	Enable(from, to int) error
	// Disable takes one Enable back, if there is one. After the last one it waits for the work of both devices and ends
	// the access, unless another library has enabled it, too.
	Disable(from, to int) error
}

// MemoryReporter is implemented by backends that know how full a device is.
type MemoryReporter interface {
	// MemoryInfo returns free and total bytes.
	MemoryInfo(device int) (free, total int64, err error)
}

// Describer is implemented by backends that can say more about a device than its number.
type Describer interface {
	// Describe returns named facts ("name", "uuid", …) in a stable order.
	Describe(device int) ([][2]string, error)
}

// LibraryReporter is implemented by backends that have loaded their runtime.
type LibraryReporter interface {
	// Library returns the runtime's file, as the loader has found it.
	Library() string
}

// Shortcuts are addresses of a CUDA driver's C functions, for callers for which a call of the backend costs too much.
// All are zero before Probe, and for a runtime that is no CUDA driver.
type Shortcuts struct {
	CurrentDevice     uintptr // cuCtxGetDevice
	CurrentContext    uintptr // cuCtxGetCurrent
	SetContext        uintptr // cuCtxSetCurrent
	PointerAttributes uintptr // cuPointerGetAttributes
	StreamQuery       uintptr // cuStreamQuery
	StreamIsCapturing uintptr // cuStreamIsCapturing; zero if the driver has none
	EventCreate       uintptr // cuEventCreate
	EventRecord       uintptr // cuEventRecord
	EventQuery        uintptr // cuEventQuery
	StreamWaitEvent   uintptr // cuStreamWaitEvent
	MemcpyToHost      uintptr // cuMemcpyDtoH
	LaunchKernel      uintptr // cuLaunchKernel
	// PrimaryContexts is the address of an array with the CUcontext of each device: NULL until the backend first uses
	// the device, and never changed after that.
	PrimaryContexts uintptr
}

// Shortcutter is implemented by backends that work through a CUDA driver.
type Shortcutter interface {
	Shortcuts() Shortcuts
	// Failed returns the error for a code that one of the Shortcuts returned.
	Failed(function uintptr, code int32) error
}

// Trimmer is implemented by backends that keep freed memory for reuse.
type Trimmer interface {
	Trim() error
}

// Exporter is implemented by backends whose memory other processes can open: that of
// allocators whose Facts.Exportable says so.
type Exporter interface {
	// Export returns an opaque handle for the allocation that holds at, and the offset of at in it.
	Export(at Region) (handle []byte, offset int, err error)
	// Import opens a handle that another process made of an allocation of at least least bytes. Close ends that.
	Import(handle []byte, device, least int) (Region, error)
	Close(at Region) error
}
