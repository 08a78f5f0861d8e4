//go:build cgo

package host

/*
#include "shared.h"
*/
import "C"

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hamr/backends"
)

// DescriptorOf serves allocator Shared, whose memory is a file's from its start on.
func (*Backend) DescriptorOf(at backends.Region) (descriptor, size int, err error) {
	if at.Allocator != backends.Shared || at.Address == 0 {
		return -1, 0, &backends.UnavailableError{Backend: "host",
			Reason: fmt.Sprintf("memory of allocator %s is no descriptor's", at.Allocator)}
	}
	var mine C.int
	var asked C.size_t
	var maker C.hamr_shared_place
	if C.hamr_shared_origin(C.uintptr_t(at.Address), &mine, &asked, &maker) == 0 {
		return -1, 0, &backends.UnavailableError{Backend: "host",
			Reason: fmt.Sprintf("the memory at %#x is no descriptor's", at.Address)}
	}
	if descriptor, err = unix.FcntlInt(uintptr(mine), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return -1, 0, err
	}
	page := unix.Getpagesize()
	return descriptor, (int(asked) + page - 1) / page * page, nil
}
