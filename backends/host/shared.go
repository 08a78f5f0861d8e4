package host

/*
#include "shared.h"
*/
import "C"

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"hamr/backends"
)

// Memory of allocator Shared is a file without a name, see memfd_create(2), mapped and kept
// open. Forked children inherit both; others open it by the process and the descriptor,
// while that process has it. This is what the kernel calls it in /proc.
const sharedName = "/memfd:hamr-shared"

// allocateShared returns memory of zeros, which cost nothing: a new file has no pages.
func allocateShared(size int) (backends.Address, error) {
	at, err := C.hamr_shared_allocate(C.size_t(size))
	switch {
	case at != 0:
		return backends.Address(at), nil
	case errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ENOSPC):
		return 0, &backends.OutOfMemoryError{Allocator: backends.Shared, Device: backends.HostDevice, Size: size}
	}
	return 0, &backends.UnavailableError{Backend: "host", Tried: []string{"memfd_create"},
		Reason: "allocator shared: " + err.Error()}
}

func freeShared(at backends.Address) {
	C.hamr_shared_free(*(*unsafe.Pointer)(unsafe.Pointer(&at))) // see bytesAt
}

// Export returns a handle by which other processes of the same user and machine open memory of Shared, while its
// creator or this process has it.
func (*Backend) Export(at backends.Region) (handle []byte, offset int, err error) {
	base, err := sharedBase(at.Address)
	if err != nil {
		return nil, 0, err
	}
	var descriptor C.int
	var size C.size_t
	var maker C.hamr_shared_place
	if base == 0 || C.hamr_shared_origin(C.uintptr_t(base), &descriptor, &size, &maker) == 0 {
		return nil, 0, fmt.Errorf("the memory at %#x is not of allocator %s", at.Address, backends.Shared)
	}
	var file syscall.Stat_t
	if err := syscall.Fstat(int(descriptor), &file); err != nil {
		return nil, 0, fmt.Errorf("the descriptor of the shared memory at %#x: %w", at.Address, err)
	}
	// A worker may drop what it sends back before that is read, so the creator is asked first.
	text := fmt.Sprint(file.Dev, file.Ino, uint64(size), maker.process, maker.descriptor, os.Getpid(), descriptor)
	return []byte(text), int(at.Address - base), nil
}

// Import maps the memory of a handle that Export returned, in whatever process. Close ends
// the mapping, as Free does.
func (*Backend) Import(handle []byte, device, least int) (backends.Region, error) {
	if err := checkDevice(device); err != nil {
		return backends.Region{}, err
	}
	var f sharedFile
	var maker, exporter sharedPlace
	if _, err := fmt.Sscan(string(handle), &f.dev, &f.inode, &f.size, &maker.process, &maker.descriptor,
		&exporter.process, &exporter.descriptor); err != nil || f.size == 0 {
		return backends.Region{}, fmt.Errorf("the handle of shared memory is %q: accepted is what Export returned", handle)
	}
	if least < 0 || uint64(least) > f.size {
		return backends.Region{}, fmt.Errorf("%d bytes of shared memory are asked for: accepted are as many as it has, %d",
			least, f.size)
	}
	fd, err := f.open(maker)
	if err != nil {
		var second error
		if fd, second = f.open(exporter); second != nil {
			return backends.Region{}, fmt.Errorf(
				"the shared memory is not there any more: %w; its maker must keep it until others have it", err)
		}
		maker = exporter
	}
	at, err := C.hamr_shared_map(C.int(fd), C.size_t(f.size),
		C.hamr_shared_place{process: C.int(maker.process), descriptor: C.int(maker.descriptor)})
	if at == 0 {
		_ = syscall.Close(fd)
		if errors.Is(err, syscall.ENOMEM) {
			return backends.Region{}, &backends.OutOfMemoryError{Allocator: backends.Shared, Device: device, Size: int(f.size)}
		}
		return backends.Region{}, err
	}
	return backends.Region{Address: backends.Address(at), Allocator: backends.Shared, Device: device}, nil
}

// sharedPlace is where a process has a file open.
type sharedPlace struct{ process, descriptor int32 }

// sharedFile distinguishes a file from later ones with the same descriptor number.
type sharedFile struct{ dev, inode, size uint64 }

func (f sharedFile) open(at sharedPlace) (descriptor int, err error) {
	name := fmt.Sprintf("/proc/%d/fd/%d", at.process, at.descriptor)
	descriptor, err = syscall.Open(name, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	var found syscall.Stat_t
	if err = syscall.Fstat(descriptor, &found); err == nil &&
		(found.Dev != f.dev || found.Ino != f.inode || found.Size < int64(f.size)) {
		err = errors.New("it is another file")
	}
	if err != nil {
		_ = syscall.Close(descriptor)
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return descriptor, nil
}

// Close ends what Import began.
func (b *Backend) Close(at backends.Region) error { return b.Free(at, 0, 0) }

// sharedBase returns where the allocation that holds at starts, or zero if it is none of Shared's. It asks the
// kernel, since others may say wrongly that their memory is Shared's.
func sharedBase(at backends.Address) (backends.Address, error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	defer maps.Close()
	var before backends.Address // the end of the mapping in front, if it can be read
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var start, end, offset backends.Address
		var access string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %x", &start, &end, &access, &offset); n != 4 {
			continue
		}
		if start <= at && at < end {
			if !strings.Contains(lines.Text(), sharedName) || (offset == 0 && before != start) {
				return 0, nil
			}
			return start - offset, nil
		}
		before = 0
		if strings.HasPrefix(access, "r") {
			before = end
		}
	}
	return 0, nil
}
