package gobuffer

import (
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/shares"
)

// Sharing says how Array.Share shares.
type Sharing struct {
	// Copy says whether elements are copied, once, into memory that other processes can have, if they cannot have the
	// original in place. CopyAlways copies in any case.
	Copy Copying
	// ReadOnly makes receivers map the memory for reading only, so that a write fails. Memory that cannot be mapped so is
	// refused, unless it is copied. A receiver can still map it for writing by the descriptor, as /proc/self/fd/N opens it
	// anew, except a copy on the host or sealed memory: the kernel refuses that.
	ReadOnly bool
	// Of is the memory that the elements lie in, if the Array does not know it: that of an array of OpenShared, of which
	// somebody else has made this view.
	Of *Memory
	// Descriptor takes the place of Of for memory of a descriptor that the caller owns.
	Descriptor *Descriptor
	// Settled says that work on the elements is over.
	Settled bool
}

// Descriptor is memory that a file descriptor is of, where it is mapped at Start, Size bytes.
type Descriptor struct {
	Number   int
	Start    backends.Address
	Size     int
	ReadOnly bool // it is not to be mapped for writing
}

// Shared is what another process opens elements by: its Frame and its Descriptors. Send transmits them together, and so
// may any transport that duplicates descriptors, as SCM_RIGHTS does. The memory lasts while anybody has the descriptors
// or what was opened by them. Its methods are safe for concurrent use.
type Shared struct {
	mu                     sync.Mutex
	frame                  []byte
	descriptors            []int
	copied, readOnly, lent bool
}

// newShared is what is sent of a frame; the descriptors are its own from now on.
func newShared(f *shares.Frame, descriptors []int, err error) (*Shared, error) {
	if err != nil {
		return nil, err
	}
	s := &Shared{frame: f.Encode(), descriptors: descriptors}
	s.copied, s.readOnly, s.lent = f.Copied, f.ReadOnly, f.Lent()
	return s, nil
}

// Share returns what other processes open the elements by: in place if their memory allows that, else as a copy. See
// Sharing. It waits for the work on the elements, so that receivers need not. In place are memory of OpenShared, memory
// of allocator shared, memory of a pool that other processes import (HAMR_CUDA_POOL_SHARED), and what CUDA's runtime
// has allocated, for this Array or another library. The caller closes the result once it was sent.
//
// Memory in place without a descriptor stays allocated until all who could open it, or have opened it, are gone. A
// process that ends lets go of it.
func (a *Array) Share(s Sharing) (*Shared, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if !s.Settled {
		if err := a.Synchronize(); err != nil {
			return nil, err
		}
	}
	f := &shares.Frame{Layout: a.layout, ReadOnly: s.ReadOnly || a.fixed, Allocator: a.options.Allocator}
	if a.memory != nil {
		f.Allocator = a.memory.region.Allocator
	}
	if a.layout.Count() == 0 {
		return a.shareNothing(f)
	}
	low, high := a.layout.Span()
	f.Size, f.First = high-low, -low
	if s.Copy != CopyAlways {
		made, err := a.shareInPlace(f, s, offset(a.address, low))
		if made != nil || !errors.Is(err, backends.ErrUnavailable) {
			return made, err
		}
		if s.Copy == CopyNever {
			return nil, valueError("copy", "False",
				"None and True, since other processes cannot have the "+a.memory.String()+" in place: "+reason(err))
		}
		if s.ReadOnly {
			return nil, valueError("readonly", "True",
				"it with copy=True, since other processes cannot have the "+a.memory.String()+
					" in place for reading only: "+reason(err))
		}
	}
	return a.shareCopy(f, s.ReadOnly)
}

func reason(err error) string {
	var unavailable *backends.UnavailableError
	if errors.As(err, &unavailable) {
		return unavailable.Reason
	}
	return err.Error()
}

// Share is [Array.Share].
func (b *Buffer[T]) Share(s Sharing) (*Shared, error) { return b.array().Share(s) }

func (a *Array) shareNothing(f *shares.Frame) (*Shared, error) {
	f.Layout.Strides = arrayiface.CStrides(f.Layout.Shape, f.Layout.Type.Size())
	f.Allocator = a.options.Allocator
	if b, err := a.runtime.Backend(f.Allocator); err == nil && f.Allocator.Kind() != backends.Pageable {
		f.Device, _ = a.runtime.shares.DeviceID(b, a.options.Device) // without it the receiver takes the host
	}
	return newShared(f, nil, nil)
}

// shareInPlace returns an *UnavailableError where the elements that start at an address cannot be had in place.
func (a *Array) shareInPlace(f *shares.Frame, s Sharing, start backends.Address) (*Shared, error) {
	d, err := a.descriptor(s)
	if err != nil {
		return nil, err
	}
	if d != nil {
		from := a.memory
		descriptors, err := a.runtime.shares.Describe(f, from.backend, from.region, d, int(start-d.Start))
		return newShared(f, descriptors, err)
	}
	m := a.memory
	if s.Of != nil {
		m = s.Of
	}
	switch {
	case s.ReadOnly:
		return nil, shares.Unavailable("it cannot be mapped for reading only")
	case m.attachment() != nil:
		return nil, shares.Unavailable("it is another process's")
	case m.Mapped():
		return nil, shares.Unavailable("the host has it mapped")
	}
	from := shares.Source{Reference: reference{m}, Backend: m.backend, Region: m.region, Owned: m.owned}
	descriptors, err := a.runtime.shares.Lend(f, from, start)
	return newShared(f, descriptors, err)
}

// reference is a reference to memory that is lent.
type reference struct{ *Memory }

func (r reference) Again() shares.Reference { return reference{r.Retain()} }

// descriptor returns one that the memory is of, which is the caller's to close; nil if there is none.
func (a *Array) descriptor(s Sharing) (*shares.Descriptor, error) {
	found := (*shares.Descriptor)(s.Descriptor)
	if found == nil {
		m := a.memory
		if s.Of != nil {
			m = s.Of
		}
		if a := m.attachment(); a != nil {
			found = a.Descriptor
		}
		if b, ok := backends.As[backends.DescriptorOwner](m.backend); found == nil && ok && m.owned && m.region.Address != 0 {
			number, size, err := b.DescriptorOf(m.region)
			if errors.Is(err, backends.ErrUnavailable) {
				return nil, nil
			}
			return &shares.Descriptor{Number: number, Start: m.region.Address, Size: size}, err
		}
	}
	if found == nil {
		return nil, nil
	}
	number, err := shares.Duplicate(found.Number)
	if err != nil {
		return nil, err
	}
	d := *found
	d.Number = number
	return &d, nil
}

// shareCopy copies the elements to memory of the same device that is a descriptor's, or of the host.
func (a *Array) shareCopy(f *shares.Frame, readOnly bool) (*Shared, error) {
	r := a.runtime
	to, device := r.sharedBeside(a.memory.region)
	layout, err := arrayiface.NewLayout(a.layout.Type, a.layout.Shape, nil)
	if err != nil {
		return nil, err
	}
	m, descriptor, err := r.NewShared(to, device, layout.NBytes())
	if err != nil {
		return nil, err
	}
	at, size, b := m.region, m.Size(), m.backend
	copied := View(m, at.Address, layout, layout.Count(), false,
		Options{Allocator: at.Allocator, Device: at.Device, Transfer: Sync})
	err = copied.Until(a.stop).Assign(a)
	if err == nil {
		err = copied.Synchronize()
	}
	if err = errors.Join(err, copied.Close()); err != nil {
		return nil, errors.Join(err, unix.Close(descriptor))
	}
	if readOnly && at.Device == backends.HostDevice {
		// Nobody has it mapped for writing any more, and nobody may do so again.
		if _, err := unix.FcntlInt(uintptr(descriptor), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err != nil {
			return nil, errors.Join(err, unix.Close(descriptor))
		}
	}
	f.Layout, f.Copied, f.ReadOnly = layout, true, readOnly
	f.Size, f.First = layout.NBytes(), 0
	d := &shares.Descriptor{Number: descriptor, Start: at.Address, Size: size}
	descriptors, err := r.shares.Describe(f, b, at, d, 0)
	return newShared(f, descriptors, err)
}

// sharedBeside is the allocator and device of shareable memory near other memory.
func (r *Runtime) sharedBeside(at backends.Region) (backends.Allocator, int) {
	if at.Device >= 0 {
		if s, device, err := r.sharer(at.Allocator, at.Device); err == nil && s.Shares(device) == nil {
			if _, err := r.shares.DeviceID(r.byAllocator[at.Allocator].backend, device); err == nil {
				return at.Allocator, device
			}
		}
	}
	return backends.Shared, backends.HostDevice
}

// Frame is what goes with the descriptors, at most 4096 bytes.
func (s *Shared) Frame() []byte {
	if s == nil {
		return nil
	}
	return s.frame
}

// Descriptors returns those that go with the frame, in their order. They are closed by Close.
func (s *Shared) Descriptors() []int {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.descriptors
}

// Copied reports whether receivers get a copy of the elements.
func (s *Shared) Copied() bool { return s != nil && s.copied }

// ReadOnly reports whether receivers get the elements for reading only.
func (s *Shared) ReadOnly() bool { return s != nil && s.readOnly }

// Lent reports whether the memory is lent: see PrepareShare.
func (s *Shared) Lent() bool { return s != nil && s.lent }

// Close lets go of the descriptors. Closing twice is harmless.
func (s *Shared) Close() error {
	if s == nil || s.frame == nil {
		return zeroError("share", "what Array.Share returns")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.descriptors
	s.descriptors = nil
	return shares.Close(list)
}

// SpareEnds holds the descriptors of a lease that was made ahead, plus one; 0 is none. A forked child that goes on
// without its parent's runtime closes them. Otherwise it would hold what is shared later.
func SpareEnds() *[2]atomic.Int32 { return shares.SpareEnds() }

// PrepareShare makes a lease ahead for the next Share of memory without a descriptor. An error of that appears in
// Share.
func PrepareShare() { shares.Prepare() }

// FrameLength returns the length of a frame of Shared, from its first 16 bytes, and the number of descriptors that go
// with it. It is for transports that do not keep messages apart. If it is no frame the error is an *ArgumentError.
func FrameLength(header []byte) (length, descriptors int, err error) {
	return shares.FrameLength(header)
}
