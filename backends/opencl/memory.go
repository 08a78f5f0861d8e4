package opencl

import (
	"fmt"
	"sync"

	"hamr/backends"
	"hamr/backends/internal/dl"
)

const (
	memReadWrite   = 1 << 0
	memFineGrain   = 1 << 10
	mapRead        = 1 << 0
	mapWrite       = 1 << 1
	blocking       = 1
	leastAlignment = 64 // a line of most caches; 0 would be the device's largest type
)

// svm is held while shared virtual memory is allocated or freed. OpenCL lets all threads do so at once; NVIDIA's
// driver (580.159) loses count then, returns NULL, and ends the process in a later copy.
var svm sync.Mutex

// Allocate takes memory of the device's context. Zeroing is work on the stream.
func (b *Backend) Allocate(r backends.Request) (backends.Address, error) {
	if _, err := b.device("Allocate", r.Device); err != nil {
		return 0, err
	}
	if err := b.Supports(r.Allocator, r.Device); err != nil {
		return 0, err
	}
	q, d, err := b.queueOn("Allocate", r.Device, r.Stream)
	if err != nil {
		return 0, err
	}
	at, err := b.take(d, r)
	if err != nil || !r.Zero {
		return at, err
	}
	if err := b.fill(d, q, at, []byte{0}, r.Size); err != nil {
		_ = b.give(d, at)
		return 0, err
	}
	return at, nil
}

func (b *Backend) take(d *device, r backends.Request) (backends.Address, error) {
	size := uintptr(r.Size)
	if d.memory != usmMemory {
		flags := uintptr(memReadWrite)
		if d.memory == fineMemory && r.Allocator == backends.OpenCLSVM {
			flags |= memFineGrain
		}
		svm.Lock()
		at := dl.Call(b.library.SVMAlloc, d.context, flags, size, leastAlignment)
		svm.Unlock()
		if at == 0 {
			// The call gives no reason, and no other reason is possible here.
			return 0, &backends.OutOfMemoryError{Allocator: r.Allocator, Device: r.Device, Size: r.Size,
				Detail: fmt.Sprintf("clSVMAlloc returned NULL; CL_DEVICE_MAX_MEM_ALLOC_SIZE is %d", d.largest)}
		}
		return backends.Address(at), nil
	}
	function := d.usm.DeviceAlloc
	if r.Allocator == backends.OpenCLSVM {
		function = d.usm.SharedAlloc
	}
	at, code := madeBy(function, d.context, d.handle, 0, size, leastAlignment)
	if code != success || at == 0 {
		if code == success {
			code = allocationFailure
		}
		return 0, outOfMemory(code, dl.SymbolOf(&d.usm, function), r)
	}
	return backends.Address(at), nil
}

// Free gives memory back at once.
func (b *Backend) Free(at backends.Region, _ int, _ backends.Stream) error {
	d, err := b.device("Free", at.Device)
	if err != nil {
		return err
	}
	return b.give(d, at.Address)
}

func (b *Backend) give(d *device, at backends.Address) error {
	if d.memory == usmMemory {
		if code := int32(dl.Call(d.usm.Free, d.context, uintptr(at))); code != success {
			return failure("clMemFreeINTEL", code, "")
		}
		return nil
	}
	svm.Lock()
	defer svm.Unlock()
	dl.Call(b.library.SVMFree, d.context, uintptr(at))
	return nil
}

// Maps is true of OpenCLSVM.
func (*Backend) Maps(a backends.Allocator) bool { return a == backends.OpenCLSVM }

// onHost reports whether the host may use memory of an allocator on d at any time.
func (d *device) onHost(a backends.Allocator) bool {
	return a == backends.OpenCLSVM && d.memory >= fineMemory
}

// HostReaches is true of OpenCLSVM where Map has nothing to do.
func (b *Backend) HostReaches(at backends.Region) bool {
	return at.Device >= 0 && at.Device < len(b.devices) && b.devices[at.Device].onHost(at.Allocator)
}

// Map does something only where the grain is coarse: then it waits for the driver. The address stays the same.
func (b *Backend) Map(at backends.Region, size int, write bool) (backends.Address, error) {
	d, err := b.device("Map", at.Device)
	if err != nil || d.onHost(at.Allocator) {
		return at.Address, err
	}
	how := uintptr(mapRead)
	if write {
		how |= mapWrite
	}
	return at.Address, b.call(b.library.EnqueueSVMMap, d.aside.Handle(), blocking, how,
		uintptr(at.Address), uintptr(size), 0, 0, 0)
}

// Unmap ends that, and waits for it.
func (b *Backend) Unmap(at backends.Region, host backends.Address) error {
	d, err := b.device("Unmap", at.Device)
	if err != nil || d.onHost(at.Allocator) {
		return err
	}
	if err := b.call(b.library.EnqueueSVMUnmap, d.aside.Handle(), uintptr(host), 0, 0, 0); err != nil {
		return err
	}
	return b.call(b.library.Finish, d.aside.Handle())
}
