package gobuffer

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"hamr/backends"
	"hamr/gobuffer/internal/backing"
	"hamr/gobuffer/internal/counts"
	"hamr/gobuffer/internal/order"
	"hamr/gobuffer/internal/shares"
)

// Memory is one allocation, or foreign memory that was adopted, with the number of references to it. The last Release
// frees it or tells its owner. All methods are safe for concurrent use. On nil and the zero value those that return an
// error return one that is ErrZero, and the others their zero values; Retain and Release of memory that was released
// before panic, since its bytes may be somebody else's.
type Memory struct {
	runtime *Runtime
	*served // what the Runtime knows of the allocator
	region  backends.Region
	size    atomic.Int64   // bytes: they may become more, see extend
	asked   atomic.Uintptr // the stream as the caller named it
	stream  atomic.Uintptr // the same, resolved: its release is ordered on it
	turns   atomic.Uint32  // how often an Array has turned from a stream: see Handle.remember
	place   counts.Place   // in the list of the counter
	ending  ending
	owned   bool        // it is freed when it ends
	keeps   bool        // temporaries of its elements were kept; for who drops the last reference
	every   atomic.Bool // its release waits for all streams of the device
	retired bool        // it counts as freed
	left    atomic.Bool // the stream that it was made for has ended
	library Library
	tag     backends.Tag // that it is paused by
	booked  uint32       // books.epoch in which its bytes were booked; guarded by books.mutex
	refs    atomic.Int64
	uses    order.Uses // enqueued and not yet waited for
	first   pattern    // what it was filled with; here to save an allocation
	watched *uint64    // what tells whether it was written to, of temporaries while tracing
	mapping *mapping   // of memory that the host maps, and of the host's view of it; else nil
	life    *lives     // while there is a Checker; else nil
}

// ending is how memory ends after its last use. The host's view of other memory has none: see endMapping.
type ending interface{ end(m *Memory) error }

type (
	freed      struct{}                    // our own: its backend frees it
	freedWhole struct{}                    // likewise, of TakeOver: only its allocator knows the size
	handedBack func()                      // its owner is told, unless the function is nil
	takenBack  func(backends.Stream) error // its owner takes it back in the order of its stream
	unmapped   shares.Attachment           // what is mapped at its addresses ends
)

// newMemory is room for memory of an allocator and for the first work on it, if there will be
// one: one object for Go's collector.
func (r *Runtime) newMemory(a backends.Allocator) *Memory {
	if r == nil || a < 0 || int(a) >= allocatorSlots || !r.byAllocator[a].inOrder {
		return new(Memory)
	}
	made := new(struct {
		memory Memory
		begun  order.Work
	})
	made.memory.uses.SetRoom(&made.begun)
	return &made.memory
}

// place makes m size bytes at a region whose allocator and device are checked, with one reference.
func (r *Runtime) place(m *Memory, at backends.Region, size int, stream backends.Stream) (err error) {
	b, err := r.Backend(at.Allocator)
	if err != nil {
		return err
	}
	if at.Device, err = backing.Device(b, at.Allocator, at.Device); err != nil {
		return err
	}
	m.runtime, m.served, m.region = r, &r.byAllocator[at.Allocator], at
	m.size.Store(int64(size))
	if m.maps {
		m.mapping = newMapping(m)
	}
	m.asked.Store(uintptr(stream))
	m.stream.Store(uintptr(stream))
	m.refs.Store(1)
	return nil
}

// resolveStream keeps the release from being ordered on the default stream of
// whatever thread happens to drop the last reference.
func (m *Memory) resolveStream() error {
	if m.streams == nil {
		return nil
	}
	s, err := m.resolve(m.ordered())
	m.stream.Store(uintptr(s))
	return err
}

// resolve turns a stream that may be used with the memory into one that means the same from every thread.
func (m *Memory) resolve(s backends.Stream) (backends.Stream, error) {
	return order.Resolve(m.streams, m.kind, m.context(), s)
}

// ordered is the stream that the memory's release is ordered on.
func (m *Memory) ordered() backends.Stream { return backends.Stream(m.stream.Load()) }

// resolved is a stream that an Array may keep: the stream given, unless that means something else on every thread.
func (m *Memory) resolved(s backends.Stream) (backends.Stream, error) {
	switch {
	case s == 0 || m.streams == nil:
		return s, nil
	case uintptr(s) == m.asked.Load() && m.region.Address != 0:
		return m.ordered(), nil
	}
	return m.resolve(s)
}

// context is the device whose streams serve the memory: page-locked memory belongs to none.
func (m *Memory) context() int { return max(m.region.Device, 0) }

// check refuses what was not allocated, adopted or taken over.
func (m *Memory) check() error {
	if m == nil || m.runtime == nil {
		return errNoMemory
	}
	return nil
}

// Region says where the memory starts and whose it is: of nobody's, allocator backends.None on backends.HostDevice.
func (m *Memory) Region() backends.Region {
	if m.check() != nil {
		return backends.Region{Allocator: backends.None, Device: backends.HostDevice}
	}
	return m.region
}

// Size returns the number of bytes.
func (m *Memory) Size() int {
	if m == nil {
		return 0
	}
	return int(m.size.Load())
}

// Owned reports whether the last Release frees the memory.
func (m *Memory) Owned() bool { return m != nil && m.owned }

// Asynchronous reports whether work may be pending on the memory.
func (m *Memory) Asynchronous() bool { return m.check() == nil && m.streams != nil }

// Runtime returns the runtime that counts the memory.
func (m *Memory) Runtime() *Runtime {
	if m == nil {
		return nil
	}
	return m.runtime
}

// Retain adds a reference and returns m.
func (m *Memory) Retain() *Memory {
	if m != nil && m.refs.Add(1) <= 1 {
		m.refs.Add(-1)
		if m.check() == nil {
			panic("gobuffer: Retain of released memory")
		}
	}
	return m
}

// String is for messages.
func (m *Memory) String() string {
	switch {
	case m == nil:
		return "<nil>"
	case m.check() != nil:
		return "memory that was not allocated"
	}
	return fmt.Sprintf("memory of %d bytes (allocator %s, device %d)", m.Size(), m.region.Allocator, m.region.Device)
}

// lives is how owned memory came to be and how it ended, as far as is known.
func (m *Memory) lives() lives {
	if m.life == nil {
		return lives{}
	}
	return *m.life
}

// mapping is the state of memory that the host uses only while it is mapped. Then that is a
// Memory of its own, ordinary host memory whose last Release unmaps, and all that hamr does
// is done there; else it is the device's, and hamr leaves the host out.
type mapping struct {
	home      *Memory // the device's
	mutex     sync.Mutex
	left      sync.Cond              // when enqueuing has become zero
	enqueuing int                    // operations that rely on the memory being the device's
	host      atomic.Pointer[Memory] // nil while it is; changed with the mutex held
	writable  bool
}

func newMapping(home *Memory) *mapping {
	x := &mapping{home: home}
	x.left.L = &x.mutex
	return x
}

// mappable reports whether the host has to map m, which is nil, perhaps.
func (m *Memory) mappable() bool { return m != nil && m.mapping != nil && m.mapping.home == m }

// counterparts are m and, while the host has it mapped, the other of the two: memory and the
// host's view of it. Who looks for the users of a stream looks at both.
func (m *Memory) counterparts() []*Memory {
	if m.mapping == nil {
		return []*Memory{m}
	}
	list := []*Memory{m.mapping.home, m.mapping.host.Load()}
	return slices.DeleteFunc(list, func(each *Memory) bool { return each == nil })
}

// Mapped reports whether m is the host's view of other memory, which a device has again at its last Release.
func (m *Memory) Mapped() bool { return m != nil && m.mapping != nil && m.mapping.home != m }

// attachment is what is mapped at the memory's addresses, or nil.
func (m *Memory) attachment() *shares.Attachment {
	a, _ := m.ending.(*unmapped)
	return (*shares.Attachment)(a)
}

// ends reports whether what is at the addresses goes with the last Release: nothing may use them then.
func (m *Memory) ends() bool { return m.owned || m.attachment() != nil }

// isTakenBack reports whether the owner takes the memory back in the order of its stream.
func (m *Memory) isTakenBack() bool {
	_, is := m.ending.(takenBack)
	return is
}

// isTakenOver reports whether the memory is owned, but was not allocated by us.
func (m *Memory) isTakenOver() bool {
	_, is := m.ending.(freedWhole)
	return is
}

// freedInStreamOrder reports whether the release takes effect on the stream, after what
// is there already, instead of at once.
func (m *Memory) freedInStreamOrder() bool {
	//mutate:replace a backend's pool gets memory back before the work on it is ordered
	//mutate:with m.inOrder => m.region.Allocator.Ordered()
	return m.owned && m.inOrder || m.streams != nil && m.isTakenBack()
}
