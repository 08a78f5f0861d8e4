package backendtest

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

// sharedUnit is what sizes of a Fake's shared memory are multiples of.
const sharedUnit = 64 << 10

// sharing is the allocator of shared memory: one that is not taken in stream order, if there is any.
func (f *fakeMemory) sharing() backends.Allocator {
	list := slices.DeleteFunc(backends.Allocators(), func(a backends.Allocator) bool {
		return a.Backend() != f.Name() || a.Kind() != backends.DeviceOnly
	})
	slices.SortStableFunc(list, func(a, b backends.Allocator) int {
		if a.Ordered() != b.Ordered() && a.Ordered() {
			return -1
		}
		return 0
	})
	return list[len(list)-1]
}

// Shares is nil unless FakeOptions.NoSharing or Fine is set.
func (f *fakeMemory) Shares(device int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Shares", "%d", device); err != nil {
		return err
	}
	if f.options.NoSharing || f.options.Fine {
		return &backends.UnavailableError{Backend: f.Name(), Reason: "no sharing"}
	}
	return f.checkDevice("Shares", device)
}

// SharedUnit is the same for all devices.
func (f *fakeMemory) SharedUnit(device int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("SharedUnit", "%d", device); err != nil {
		return 0, err
	}
	return sharedUnit, f.checkDevice("SharedUnit", device)
}

func (f *fakeMemory) checkShared(call string, device, size int) error {
	if err := f.checkDevice(call, device); err != nil {
		return err
	}
	if size <= 0 || size%sharedUnit != 0 {
		return fmt.Errorf("shared memory of %d bytes: accepted are multiples of %d", size, sharedUnit)
	}
	return nil
}

// sharedName tells whose memory a file is.
func (f *fakeMemory) sharedName(device int) string {
	return fmt.Sprintf("fake-%s-%d", f.Name(), device)
}

// NewShared returns garbage, in a file that other processes' fakes of the same name map, too.
func (f *fakeMemory) NewShared(device, size int) (backends.Region, int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	none := backends.Region{}
	if err := f.enter("NewShared", "device %d, %d bytes", device, size); err != nil {
		return none, -1, err
	}
	if err := f.checkShared("NewShared", device, size); err != nil {
		return none, -1, err
	}
	if err := f.checkRoom(backends.Request{Allocator: f.sharing(), Device: device, Size: size}, device, size); err != nil {
		return none, -1, err
	}
	descriptor, err := unix.MemfdCreate(f.sharedName(device), unix.MFD_CLOEXEC)
	if err != nil {
		return none, -1, err
	}
	if err = unix.Ftruncate(descriptor, int64(size)); err == nil {
		var b *block
		if b, err = f.mapShared(descriptor, device, size); err == nil {
			spoil(b.data)
			return backends.Region{Address: b.base, Allocator: b.allocator, Device: device}, descriptor, nil
		}
	}
	_ = unix.Close(descriptor)
	return none, -1, err
}

func (f *fakeMemory) mapShared(descriptor, device, size int) (*block, error) {
	data, err := unix.Mmap(descriptor, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	b := &block{base: newAddresses(size), size: size, allocator: f.sharing(), device: device, data: data,
		reach: size, shared: true}
	f.used[device] += int64(size)
	f.insert(b)
	return b, nil
}

// MapShared maps what another Fake of the same name, in whatever process, has made on the device.
func (f *fakeMemory) MapShared(descriptor, device, size int, readOnly bool) (backends.Region, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	none := backends.Region{}
	if err := f.enter("MapShared", "device %d, %d bytes, read-only %v", device, size, readOnly); err != nil {
		return none, err
	}
	if err := f.checkShared("MapShared", device, size); err != nil {
		return none, err
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", descriptor))
	var file unix.Stat_t
	if err == nil {
		err = unix.Fstat(descriptor, &file)
	}
	if err != nil {
		return none, err
	}
	if want := "/memfd:" + f.sharedName(device) + " (deleted)"; name != want || file.Size < int64(size) {
		return none, fmt.Errorf("descriptor %d is of %s, %d bytes: accepted is %s with %d", descriptor,
			name, file.Size, want, size)
	}
	b, err := f.mapShared(descriptor, device, size)
	if err != nil {
		return none, err
	}
	b.readOnly = readOnly
	return backends.Region{Address: b.base, Allocator: b.allocator, Device: device}, nil
}

func (f *fakeMemory) sharedBlock(call string, at backends.Region, size int) (*block, error) {
	b, err := f.blockOf(call, at, size)
	if err == nil && (!b.shared || size == 0) {
		err = f.violate(call, "%s with %d bytes is not shared", describe(at), size)
	}
	return b, err
}

// ProtectShared makes a kernel's write there a violation, and any other write an error.
func (f *fakeMemory) ProtectShared(at backends.Region, size int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("ProtectShared", "%s, %d bytes", describe(at), size); err != nil {
		return err
	}
	b, err := f.sharedBlock("ProtectShared", at, size)
	if err != nil {
		return err
	}
	b.readOnly = true
	return nil
}

// UnmapShared takes the addresses away at once.
func (f *fakeMemory) UnmapShared(at backends.Region, size int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("UnmapShared", "%s, %d bytes", describe(at), size); err != nil {
		return err
	}
	b, err := f.sharedBlock("UnmapShared", at, size)
	if err != nil {
		return err
	}
	b.freeing = true
	data := b.data
	f.release(b)
	return unix.Munmap(data)
}

// checkWritable returns a device's error for a write where it may only read.
func (f *fakeMemory) checkWritable(call string, to memory) error {
	if to.block == nil || !to.block.readOnly {
		return nil
	}
	return &backends.DeviceError{API: f.Name(), Call: call, Name: "READ_ONLY", Code: 1}
}

// runKernel gives a kernel copies of read-only memory, which must be unchanged afterwards.
func (f *fakeMemory) runKernel(kernel func(memory func(at backends.Address, size int) []byte)) {
	var lent [][2][]byte
	kernel(func(at backends.Address, size int) []byte {
		data := f.bytesAt(at, size)
		if b := f.find(at); b == nil || !b.readOnly {
			return data
		}
		lent = append(lent, [2][]byte{data, bytes.Clone(data)})
		return lent[len(lent)-1][1]
	})
	for _, each := range lent {
		if !bytes.Equal(each[0], each[1]) {
			_ = f.violate("Execute", "a kernel has written %d bytes of memory that is read-only", len(each[0]))
		}
	}
}
