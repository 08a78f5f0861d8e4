package sycl

import (
	"fmt"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

const alignment = 64 // a line of most caches

// Allocate takes memory of the device's context. Zeroing is work on the stream.
func (b *Backend) Allocate(r backends.Request) (backends.Address, error) {
	if err := b.Supports(r.Allocator, r.Device); err != nil {
		return 0, err
	}
	q, err := b.queues.On("Allocate", r.Device, r.Stream)
	if err != nil {
		return 0, err
	}
	d := b.devices[q.Device]
	function := b.library.AllocateDevice
	switch r.Allocator {
	case backends.SYCLShared:
		function = b.library.AllocateShared
	case backends.SYCLHost:
		function = b.library.AllocateHost
	}
	at := backends.Address(dl.Call(function, alignment, uintptr(r.Size), d.queue.Handle()))
	if at == 0 {
		// The call gives no reason, and no other reason is possible here.
		return 0, &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size,
			Detail: fmt.Sprintf("%s returned NULL; max_mem_alloc_size is %d", dl.SymbolOf(&b.library, function),
				b.largest(d))}
	}
	if !r.Zero {
		return at, nil
	}
	if err := b.fill(q, at, []byte{0}, r.Size); err != nil {
		b.give(d, at)
		return 0, err
	}
	return at, nil
}

// Free gives memory back at once.
func (b *Backend) Free(at backends.Region, _ int, _ backends.Stream) error {
	d, err := b.device("Free", at.Device)
	if err != nil {
		return err
	}
	b.give(d, at.Address)
	return nil
}

func (b *Backend) give(d *device, at backends.Address) {
	dl.Call(b.library.FreeWithContext, uintptr(at), d.context)
}

// onHost reports whether the host may use memory of an allocator at any time.
func onHost(a backends.Allocator) bool { return a != backends.SYCLDevice }
