package gobuffer

import (
	"fmt"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer/internal/elements"
)

// Transfer says which movements are over when a call returns.
type Transfer int32

// The transfer modes, with HAMR's values.
const (
	// Async waits for nothing: Synchronize before touching the data from
	// another stream or from the host.
	Async Transfer = 0
	// SyncHost waits for movements from a device to the host, so that the host
	// never reads too early.
	SyncHost Transfer = 1
	// Sync waits for every movement.
	Sync Transfer = 2
)

// String returns "async", "sync_host" or "sync".
func (t Transfer) String() string {
	switch t {
	case Async:
		return "async"
	case SyncHost:
		return "sync_host"
	case Sync:
		return "sync"
	}
	return fmt.Sprintf("Transfer(%d)", int32(t))
}

// ParseTransfer is the inverse of Transfer.String.
func ParseTransfer(name string) (Transfer, error) {
	for _, t := range []Transfer{Async, SyncHost, Sync} {
		if t.String() == name {
			return t, nil
		}
	}
	return Async, valueError("transfer", fmt.Sprintf("%q", name), "async, sync_host, sync")
}

// order is how a movement is enqueued and whether it is waited for.
type order struct {
	stream   backends.Stream
	transfer Transfer
}

// piece is an array in some memory: what contents operations read and write.
type piece struct {
	memory  *Memory
	address backends.Address
	layout  arrayiface.Layout
}

func (p piece) onHost() bool {
	return p.memory == nil || p.memory.region.Allocator.ReachableFrom(backends.SpaceHost)
}

func (p piece) pointer() unsafe.Pointer { return hostPointer(p.address) }

// hostPointer turns the address of C memory into a pointer. Go's collector does
// not move or own that memory, which is what makes the conversion sound.
func hostPointer(a backends.Address) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a))
}

func (p piece) region() backends.Region {
	r := p.memory.region
	r.Address = p.address
	return r
}

// settle waits for work on the memory before the host touches it.
func (p piece) settle() error {
	if p.memory == nil {
		return nil
	}
	return p.memory.settle()
}

// copyElements makes dst's elements equal to src's, converted to dst's type.
// The shapes are equal. It works for any two places and any strides: where the
// host reaches both it is one pass, where both are plain and alike it is one
// copy by the device, and else the strided or converted side goes through the
// host.
func (r *Runtime) copyElements(dst, src piece, o order) error {
	if dst.layout.Count() == 0 {
		return nil
	}
	if dst.onHost() && src.onHost() {
		if err := src.settle(); err != nil {
			return err
		}
		if err := dst.settle(); err != nil {
			return err
		}
		return r.copyOnHost(dst, src)
	}
	alike := dst.layout.Type == src.layout.Type && dst.layout.ContiguousC() && src.layout.ContiguousC()
	if alike {
		return r.copyBytes(dst, src, dst.layout.NBytes(), o)
	}
	return r.copyThroughHost(dst, src, o)
}

func (r *Runtime) copyOnHost(dst, src piece) error {
	if !arrayiface.Overlap(uintptr(dst.address), dst.layout, uintptr(src.address), src.layout) ||
		(dst.address == src.address && dst.layout.Equal(src.layout)) {
		return elements.CopyStrided(dst.pointer(), dst.layout, src.pointer(), src.layout)
	}
	plain, err := src.layout.WithType(src.layout.Type)
	if err != nil {
		return err
	}
	between, err := r.Allocate(backends.Malloc, backends.HostDevice, plain.NBytes(), 0, false)
	if err != nil {
		return err
	}
	defer between.Release()
	p := hostPointer(between.region.Address)
	if err := elements.CopyStrided(p, plain, src.pointer(), src.layout); err != nil {
		return err
	}
	return elements.CopyStrided(dst.pointer(), dst.layout, p, plain)
}

// copyBytes moves size bytes by the runtime that owns the device side, staged
// through host memory if the two sides belong to different runtimes.
func (r *Runtime) copyBytes(dst, src piece, size int, o order) error {
	mover, device := dst.memory.backend, dst.memory.region.Device
	if dst.memory.region.Allocator.Kind() == backends.Pageable {
		mover, device = src.memory.backend, src.memory.region.Device
	} else if other := src.memory.backend; other != mover && src.memory.region.Allocator.Kind() != backends.Pageable {
		return r.copyBetweenRuntimes(dst, src, size, o)
	}
	if r.tracing() {
		r.tracef("copy %d bytes %s device %d at %#x to %s device %d at %#x", size,
			src.memory.region.Allocator, src.memory.region.Device, src.address,
			dst.memory.region.Allocator, dst.memory.region.Device, dst.address)
	}
	w := &work{mover, device, o.stream}
	if err := src.memory.orderAfterPending(w); err != nil {
		return err
	}
	if err := dst.memory.orderAfterPending(w); err != nil {
		return err
	}
	if err := mover.Copy(dst.region(), src.region(), size, o.stream); err != nil {
		return err
	}
	if _, late := mover.(backends.Streams); !late {
		return nil
	}
	if err := src.memory.mark(w); err != nil {
		return err
	}
	if err := dst.memory.mark(w); err != nil {
		return err
	}
	if o.transfer == Sync || (o.transfer == SyncHost && dst.onHost()) {
		return dst.memory.settle()
	}
	return nil
}

// copyBetweenRuntimes serves two devices of different vendors.
func (r *Runtime) copyBetweenRuntimes(dst, src piece, size int, o order) error {
	between, err := r.Allocate(backends.Malloc, backends.HostDevice, size, 0, false)
	if err != nil {
		return err
	}
	defer between.Release()
	stage := piece{between, between.region.Address, dst.layout}
	// A stream belongs to one runtime, so the two halves run on their defaults.
	if err := r.copyBytes(stage, src, size, order{transfer: Sync}); err != nil {
		return err
	}
	return r.copyBytes(dst, stage, size, order{transfer: Sync})
}

// copyThroughHost converts or rearranges elements that the host cannot reach on
// at least one side: the bytes that the strided side spans come to the host and,
// for the destination, go back. Bytes between the elements are kept.
func (r *Runtime) copyThroughHost(dst, src piece, o order) error {
	o.transfer = Sync
	hostSource, free, err := r.onHost(src, o, true)
	if err != nil {
		return err
	}
	defer free()
	if dst.onHost() {
		if err := dst.settle(); err != nil {
			return err
		}
		return r.copyOnHost(dst, hostSource)
	}
	hostTarget, freeTarget, err := r.onHost(dst, o, !dst.layout.ContiguousC())
	if err != nil {
		return err
	}
	defer freeTarget()
	if err := elements.CopyStrided(hostTarget.pointer(), hostTarget.layout, hostSource.pointer(), hostSource.layout); err != nil {
		return err
	}
	return r.writeBack(dst, hostTarget, o)
}

// onHost returns p itself, if the host reaches it, or the span of it in host
// memory, filled if asked for. free ends its use.
func (r *Runtime) onHost(p piece, o order, fill bool) (host piece, free func(), err error) {
	if p.onHost() {
		return p, func() {}, p.settle()
	}
	low, high := p.layout.Span()
	m, err := r.Allocate(backends.Malloc, backends.HostDevice, high-low, 0, false)
	if err != nil {
		return piece{}, nil, err
	}
	host = piece{m, offset(m.region.Address, -low), p.layout}
	if fill {
		span, whole := spanOf(p, low, high), spanOf(host, low, high)
		if err := r.copyBytes(whole, span, high-low, o); err != nil {
			m.Release()
			return piece{}, nil, err
		}
	}
	return host, func() { m.Release() }, nil
}

func (r *Runtime) writeBack(dst, host piece, o order) error {
	low, high := dst.layout.Span()
	return r.copyBytes(spanOf(dst, low, high), spanOf(host, low, high), high-low, o)
}

func spanOf(p piece, low, high int) piece {
	return piece{p.memory, offset(p.address, low), arrayiface.Layout{
		Type: arrayiface.Uint8, Shape: []int{high - low}, Strides: []int{1}}}
}

func offset(a backends.Address, by int) backends.Address { return backends.Address(int(a) + by) }

// fillElements sets every element of dst to one element's bytes.
func (r *Runtime) fillElements(dst piece, pattern []byte, o order) error {
	count := dst.layout.Count()
	if count == 0 {
		return nil
	}
	if dst.layout.ContiguousC() {
		return dst.fillContiguous(pattern, count, o)
	}
	o.transfer = Sync
	host, free, err := r.onHost(dst, o, true)
	if err != nil {
		return err
	}
	defer free()
	if err := elements.Fill(host.pointer(), host.layout, pattern); err != nil {
		return err
	}
	if dst.onHost() {
		return nil
	}
	return r.writeBack(dst, host, o)
}

func (p piece) fillContiguous(pattern []byte, count int, o order) error {
	m := p.memory
	w := &work{m.backend, m.region.Device, o.stream}
	if err := m.orderAfterPending(w); err != nil {
		return err
	}
	if err := m.backend.Fill(p.region(), pattern, count, o.stream); err != nil {
		return err
	}
	if _, late := m.backend.(backends.Streams); !late {
		return nil
	}
	if err := m.mark(w); err != nil {
		return err
	}
	if o.transfer == Sync {
		return m.settle()
	}
	return nil
}
