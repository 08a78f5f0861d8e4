//go:build cgo

package host

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

// sharingName is what the kernel calls such files in /proc, behind "/memfd:". It differs from that
// of allocator Shared's, which have a page in front that says where they come from.
const sharingName = "hamr-store"

// mappings are those of NewShared and MapShared.
type mappings struct {
	mu   sync.Mutex
	list map[backends.Address]*mapping
}

type mapping struct {
	size     int
	readable int // a descriptor that is opened for reading, where others see what is written, else -1
}

func (b *Backend) addMapping(at backends.Address, m *mapping) {
	b.mappings.mu.Lock()
	defer b.mappings.mu.Unlock()
	if b.mappings.list == nil {
		b.mappings.list = map[backends.Address]*mapping{}
	}
	b.mappings.list[at] = m
}

// mappingAt returns the mapping that starts at a region. mappings.mu is held.
func (b *Backend) mappingAt(at backends.Region, size int) (*mapping, error) {
	if err := checkDevice(at.Device); err != nil {
		return nil, err
	}
	m := b.mappings.list[at.Address]
	if m == nil || m.size != size {
		return nil, fmt.Errorf("no shared memory of %d bytes is mapped at %#x", size, at.Address)
	}
	return m, nil
}

// sharing tells once whether the kernel can do what is needed.
var sharing = sync.OnceValue(func() error {
	lacks := func(what string, err error) error {
		return &backends.UnavailableError{Backend: "host", Tried: []string{what},
			Reason: "memory to be shared by descriptor: " + err.Error()}
	}
	descriptor, err := NewSharedFile(unix.Getpagesize())
	if err != nil {
		return lacks("memfd_create", err)
	}
	defer unix.Close(descriptor)
	readable, err := ReadOnlyDescriptor(descriptor)
	if err != nil {
		return lacks("/proc/self/fd", err)
	}
	_ = unix.Close(readable)
	if err := SealMappings(descriptor); err != nil {
		return lacks("F_SEAL_FUTURE_WRITE", err)
	}
	return nil
})

// Shares asks the kernel once: it needs memfd_create with seals against later writing, of Linux 5.1,
// and /proc.
func (*Backend) Shares(device int) error {
	if err := checkDevice(device); err != nil {
		return err
	}
	return sharing()
}

// SharedUnit is a page.
func (*Backend) SharedUnit(device int) (int, error) { return unix.Getpagesize(), checkDevice(device) }

func checkSharedSize(device, size int) error {
	if err := checkDevice(device); err != nil {
		return err
	}
	if size <= 0 || size%unix.Getpagesize() != 0 {
		return fmt.Errorf("shared host memory of %d bytes: accepted are multiples of %d", size, unix.Getpagesize())
	}
	return nil
}

// NewSharedFile returns a descriptor, closed on exec, of new memory of size bytes, all zero, which is mapped nowhere.
// Its size never changes, since to cut a file that others have mapped ends them by SIGBUS.
func NewSharedFile(size int) (descriptor int, err error) {
	if err := checkSharedSize(backends.HostDevice, size); err != nil {
		return -1, err
	}
	if exceedsMachine(size) {
		return -1, outOfShared(size)
	}
	descriptor, err = unix.MemfdCreate(sharingName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, ranOut(err, size)
	}
	if err = unix.Ftruncate(descriptor, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(descriptor), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	}
	if err != nil {
		_ = unix.Close(descriptor)
		return -1, ranOut(err, size)
	}
	return descriptor, nil
}

func outOfShared(size int) error {
	return &backends.OutOfMemoryError{Allocator: backends.Shared, Device: backends.HostDevice, Size: size}
}

func ranOut(err error, size int) error {
	if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EFBIG) {
		return outOfShared(size)
	}
	return fmt.Errorf("shared memory of %d bytes: %w", size, err)
}

// The kernel reserves no pages for such files, so a size that cannot fit at all is refused at once.
func exceedsMachine(size int) bool {
	var machine unix.Sysinfo_t
	return unix.Sysinfo(&machine) == nil && uint64(size)/uint64(machine.Unit) > machine.Totalram+machine.Totalswap
}

// ReadOnlyDescriptor returns another descriptor, closed on exec, of the memory that a descriptor is
// of, by which nobody can map it for writing. It is the caller's to close.
func ReadOnlyDescriptor(descriptor int) (int, error) {
	name := fmt.Sprintf("/proc/self/fd/%d", descriptor)
	readable, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", name, err)
	}
	return readable, nil
}

// SealMappings stops new mappings for writing of a writable descriptor's memory. Present mappings can still be
// written to. The error is the kernel's: EPERM where the descriptor is for reading.
func SealMappings(descriptor int) error {
	_, err := unix.FcntlInt(uintptr(descriptor), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE)
	return err
}

// SealShared ends writing to a writable descriptor's memory. forGood says that nobody can write any more. Otherwise
// somebody still has it mapped for writing, or a device reads it. Nobody else can map it for writing, and SealShared
// may be called again.
func SealShared(descriptor int) (forGood bool, err error) {
	_, err = unix.FcntlInt(uintptr(descriptor), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
	if err == nil {
		return true, nil
	}
	if errors.Is(err, unix.EBUSY) {
		err = SealMappings(descriptor)
	}
	if err != nil {
		return false, fmt.Errorf("sealing the shared memory of descriptor %d: %w", descriptor, err)
	}
	return false, nil
}

// checkShared refuses what is no memory of NewSharedFile, or has less than size bytes.
func checkShared(descriptor, size int) error {
	seals, err := unix.FcntlInt(uintptr(descriptor), unix.F_GET_SEALS, 0)
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("descriptor %d is not of shared memory", descriptor)
	}
	if err != nil {
		return fmt.Errorf("descriptor %d: %w", descriptor, err)
	}
	if seals&unix.F_SEAL_SHRINK == 0 {
		return fmt.Errorf("descriptor %d is of memory that others could cut: accepted is what has the seal F_SEAL_SHRINK",
			descriptor)
	}
	var file unix.Stat_t
	if err := unix.Fstat(descriptor, &file); err != nil {
		return fmt.Errorf("descriptor %d: %w", descriptor, err)
	}
	if file.Size < int64(size) {
		return fmt.Errorf("descriptor %d is of %d bytes: %d are to be mapped", descriptor, file.Size, size)
	}
	return nil
}

// mapFile maps a file anywhere, or over what is at an address. By number, as the address is no
// pointer of Go's.
func mapFile(at backends.Address, size, protection, flags, descriptor int) (backends.Address, error) {
	if at != 0 {
		flags |= unix.MAP_FIXED
	}
	got, _, code := unix.Syscall6(unix.SYS_MMAP, uintptr(at), uintptr(size), uintptr(protection),
		uintptr(flags), uintptr(descriptor), 0)
	if code != 0 {
		return 0, code
	}
	return backends.Address(got), nil
}

func (b *Backend) mapWritable(descriptor, size int) (backends.Region, error) {
	// A writable mapping becomes read-only by a new mapping of a file that cannot be written to.
	readable, err := ReadOnlyDescriptor(descriptor)
	if err != nil {
		return backends.Region{}, err
	}
	at, err := mapAnywhere(descriptor, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(readable)
		return backends.Region{}, ranOut(err, size)
	}
	b.addMapping(at, &mapping{size: size, readable: readable})
	return sharedRegion(at), nil
}

func sharedRegion(at backends.Address) backends.Region {
	return backends.Region{Address: at, Allocator: backends.Shared, Device: backends.HostDevice}
}

// NewShared returns memory of NewSharedFile.
func (b *Backend) NewShared(device, size int) (at backends.Region, descriptor int, err error) {
	if err := checkDevice(device); err != nil {
		return backends.Region{}, -1, err
	}
	if err := sharing(); err != nil {
		return backends.Region{}, -1, err
	}
	if descriptor, err = NewSharedFile(size); err != nil {
		return backends.Region{}, -1, err
	}
	if at, err = b.mapWritable(descriptor, size); err != nil {
		_ = unix.Close(descriptor)
		return backends.Region{}, -1, err
	}
	return at, descriptor, nil
}

// MapShared takes descriptors of files in memory whose size is sealed, as NewSharedFile's is. mprotect cannot make a
// readOnly mapping writable, and such a mapping does not keep SealShared from sealing for good.
func (b *Backend) MapShared(descriptor, device, size int, readOnly bool) (backends.Region, error) {
	if err := checkSharedSize(device, size); err != nil {
		return backends.Region{}, err
	}
	if err := checkShared(descriptor, size); err != nil {
		return backends.Region{}, err
	}
	//mutate:always a mapping for reading is made for writing
	if !readOnly {
		return b.mapWritable(descriptor, size)
	}
	readable := descriptor
	if flags, err := unix.FcntlInt(uintptr(descriptor), unix.F_GETFL, 0); err != nil ||
		flags&unix.O_ACCMODE != unix.O_RDONLY {
		if readable, err = ReadOnlyDescriptor(descriptor); err != nil {
			return backends.Region{}, err
		}
		defer unix.Close(readable)
	}
	//mutate:replace a mapping for reading can be made writable
	//mutate:with readable => descriptor
	at, err := mapAnywhere(readable, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return backends.Region{}, ranOut(err, size)
	}
	b.addMapping(at, &mapping{size: size, readable: -1})
	return sharedRegion(at), nil
}

// MapSeparate does not keep SealShared from sealing for good. A write copies the page.
func (b *Backend) MapSeparate(descriptor, device, size int) (backends.Region, error) {
	if err := checkSharedSize(device, size); err != nil {
		return backends.Region{}, err
	}
	if err := checkShared(descriptor, size); err != nil {
		return backends.Region{}, err
	}
	at, err := mapAnywhere(descriptor, size, unix.PROT_READ|unix.PROT_WRITE, separately)
	if err != nil {
		return backends.Region{}, ranOut(err, size)
	}
	b.addMapping(at, &mapping{size: size, readable: -1})
	return sharedRegion(at), nil
}

// separately reserves no memory for pages that may never be written to.
const separately = unix.MAP_PRIVATE | unix.MAP_NORESERVE

// ProtectShared leaves no writable mapping behind, so that SealShared may seal for good.
func (b *Backend) ProtectShared(at backends.Region, size int) error {
	return b.remap("protecting", at, size, unix.PROT_READ, unix.MAP_SHARED)
}

// SeparateShared leaves none behind either: a write copies the page.
func (b *Backend) SeparateShared(at backends.Region, size int) error {
	return b.remap("separating", at, size, unix.PROT_READ|unix.PROT_WRITE, separately)
}

// remap maps what others see the writes of anew where it is. Else what was written would be gone.
func (b *Backend) remap(what string, at backends.Region, size, protection, flags int) error {
	b.mappings.mu.Lock()
	defer b.mappings.mu.Unlock()
	m, err := b.mappingAt(at, size)
	if err != nil {
		return err
	}
	if m.readable < 0 {
		if protection&unix.PROT_WRITE != 0 {
			return nil
		}
		return unix.Mprotect(bytesAt(at.Address, size), protection)
	}
	if _, err := mapFile(at.Address, size, protection, flags, m.readable); err != nil {
		return fmt.Errorf("%s %d bytes of shared memory at %#x: %w", what, size, at.Address, err)
	}
	err = unix.Close(m.readable)
	m.readable = -1
	return err
}

// UnmapShared takes the addresses away at once.
func (b *Backend) UnmapShared(at backends.Region, size int) error {
	b.mappings.mu.Lock()
	defer b.mappings.mu.Unlock()
	m, err := b.mappingAt(at, size)
	if err != nil {
		return err
	}
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(bytesAt(at.Address, size))), uintptr(size)); err != nil {
		return &backends.NotFreedError{Reason: fmt.Errorf("unmapping %d bytes of shared memory at %#x: %w", size, at.Address,
			err)}
	}
	delete(b.mappings.list, at.Address)
	if m.readable >= 0 {
		return unix.Close(m.readable)
	}
	return nil
}
