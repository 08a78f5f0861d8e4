package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"hamr/backends"
)

const (
	allocationHandleSize = 64 // that of the driver's CUipcMemHandle, in bytes
	lazyPeerAccess       = 1  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
)

// foreignAllocations are those of other processes that are open, and how often.
type foreignAllocations struct {
	mu     sync.Mutex
	opened map[backends.Address]*foreignAllocation
}

type foreignAllocation struct {
	device int
	handle [allocationHandleSize]byte
	times  int
}

func (f *foreignAllocations) has(at backends.Address) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened[at] != nil
}

func (b *memoryFloor) checkAllocationSharing() error {
	if slices.Contains([]uintptr{b.driver.IPCGetMemHandle, b.driver.IPCOpenMemHandle, b.driver.IPCCloseMemHandle}, 0) {
		return &backends.UnavailableError{Backend: b.Name(), Reason: "its allocations cannot be opened by other processes"}
	}
	return nil
}

// ExportAllocation asks the driver where the allocation starts, whoever has made it. What is mapped, of a
// pool or managed has no such handle.
func (b *memoryFloor) ExportAllocation(at backends.Region) (exported []byte, offset int, err error) {
	if _, err := b.device(max(at.Device, 0)); err != nil {
		return nil, 0, err
	}
	if err := b.checkAllocationSharing(); err != nil {
		return nil, 0, err
	}
	found, err := b.locate(at.Address)
	if err != nil {
		return nil, 0, err
	}
	lacks := func(why string) error {
		return &backends.UnavailableError{Backend: b.Name(), Reason: fmt.Sprintf("the memory at %#x %s", at.Address, why)}
	}
	if found.Allocator != b.dialect.Allocators.Plain || found.Device != at.Device || b.extents.locate(&found) ||
		b.foreignAllocations.has(found.Base) {
		return nil, 0, lacks(fmt.Sprintf("is no allocation of %s on device %d", b.dialect.Allocators.Plain, at.Device))
	}
	v, err := b.visitOf(found)
	if err != nil {
		return nil, 0, err
	}
	defer v.leave()
	handle := new([allocationHandleSize]byte)
	err = b.callWithPointers(b.driver.IPCGetMemHandle, uintptr(unsafe.Pointer(handle)), uintptr(found.Base))
	var refusal *backends.DeviceError
	if errors.As(err, &refusal) && (refusal.Code == invalidValue || refusal.Code == notSupported) {
		return nil, 0, lacks("has no handle for other processes: " + err.Error())
	}
	if err != nil {
		return nil, 0, err
	}
	return handle[:], int(at.Address - found.Base), nil
}

// visitOf enters the context that memory is of.
func (b *memoryFloor) visitOf(found backends.Location) (*visit, error) {
	if found.Context != 0 {
		return b.enterContext(found.Context)
	}
	return b.enter(found.Device, defaultStream)
}

// OpenAllocation counts how often an allocation was opened, since the driver opens it once.
func (b *memoryFloor) OpenAllocation(exported []byte, number int) (backends.Region, error) {
	if number < 0 {
		return backends.Region{}, fmt.Errorf("the %s backend has no device %d", b.Name(), number)
	}
	d, err := b.device(number)
	if err != nil {
		return backends.Region{}, err
	}
	if err := b.checkAllocationSharing(); err != nil {
		return backends.Region{}, err
	}
	if len(exported) != allocationHandleSize {
		return backends.Region{}, fmt.Errorf("%d bytes stand for an allocation: accepted are the %d of ExportAllocation",
			len(exported), allocationHandleSize)
	}
	handle := [allocationHandleSize]byte(exported)
	f := &b.foreignAllocations
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, open := range f.opened {
		if open.handle == handle && open.device == number {
			open.times++
			return backends.Region{Address: at, Allocator: b.dialect.Allocators.Plain, Device: number}, nil
		}
	}
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return backends.Region{}, err
	}
	defer v.leave()
	if err := b.openHandle(v.slot(0), &handle); err != nil {
		return backends.Region{}, err
	}
	at := backends.Address(v.out[0])
	if f.opened == nil {
		f.opened = map[backends.Address]*foreignAllocation{}
	}
	f.opened[at] = &foreignAllocation{number, handle, 1}
	return backends.Region{Address: at, Allocator: b.dialect.Allocators.Plain, Device: number}, nil
}

// openHandle calls a function that takes 64 bytes by value. The calling conventions of Linux have them
// on the stack behind what is in registers on x86-64, and a pointer in their place elsewhere.
func (b *memoryFloor) openHandle(out uintptr, handle *[allocationHandleSize]byte) error {
	if runtime.GOARCH != "amd64" {
		return b.callWithPointers(b.driver.IPCOpenMemHandle, out, uintptr(unsafe.Pointer(handle)), lazyPeerAccess)
	}
	arguments := []uintptr{out, lazyPeerAccess, 0, 0, 0, 0} // as many as there are registers
	for i := 0; i < allocationHandleSize; i += 8 {
		arguments = append(arguments, uintptr(binary.LittleEndian.Uint64(handle[i:])))
	}
	return b.call(b.driver.IPCOpenMemHandle, arguments...)
}

// CloseAllocation waits for the devices that reach the memory before it closes it, since the memory's owner may free
// it then.
func (b *memoryFloor) CloseAllocation(at backends.Region) error {
	d, err := b.device(max(at.Device, 0))
	if err != nil {
		return err
	}
	late := b.waitForUsers(d)
	if refused(late) {
		return late
	}
	f := &b.foreignAllocations
	f.mu.Lock()
	defer f.mu.Unlock()
	open := f.opened[at.Address]
	if open == nil {
		return errors.Join(late, fmt.Errorf("no allocation is open at %#x", at.Address))
	}
	if open.times > 1 {
		open.times--
		return late
	}
	v, err := b.enter(d.number, defaultStream)
	if err != nil {
		return &backends.NotFreedError{Reason: errors.Join(late, err)}
	}
	defer v.leave()
	if err := b.call(b.driver.IPCCloseMemHandle, uintptr(at.Address)); err != nil {
		return &backends.NotFreedError{Reason: errors.Join(late, err)}
	}
	delete(f.opened, at.Address)
	return late
}
