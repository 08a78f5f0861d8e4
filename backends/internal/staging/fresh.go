package staging

import (
	"syscall"
	"unsafe"
)

const (
	// smallestFresh is from how many bytes on it is worth asking.
	smallestFresh = 64 << 20
	probes        = 4
)

// fresh reports whether the system has yet to find some of the memory's pages. That takes longer than to copy to
// them.
func fresh(host []byte) bool {
	if len(host) < smallestFresh {
		return false
	}
	page := uintptr(syscall.Getpagesize())
	start := uintptr(unsafe.Pointer(&host[0]))
	for i := range uintptr(probes) {
		at := (start + (2*i+1)*uintptr(len(host))/(2*probes)) &^ (page - 1)
		var resident byte
		_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, at, page, uintptr(unsafe.Pointer(&resident)))
		if errno == 0 && resident&1 == 0 {
			return true
		}
	}
	return false
}
