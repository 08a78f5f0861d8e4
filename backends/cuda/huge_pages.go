package cuda

import (
	"runtime"
	"sync"
	"syscall"

	"hamr/backends"
)

const (
	hugePage     = 2 << 20
	adviceHuge   = 14      // MADV_HUGEPAGE
	touchedAlone = 8 << 20 // bytes that one thread finds pages for
	mostTouching = 8       // threads
)

func mappedSize(size int) int { return (size + hugePage - 1) &^ (hugePage - 1) }

// mapPages returns memory of whole huge pages that are there, as far as the system has such, or zero.
func mapPages(size int) backends.Address {
	size = mappedSize(size)
	const protection = syscall.PROT_READ | syscall.PROT_WRITE
	start, _, errno := syscall.Syscall6(syscall.SYS_MMAP, 0, uintptr(size+hugePage), protection,
		syscall.MAP_PRIVATE|syscall.MAP_ANON, ^uintptr(0), 0)
	if errno != 0 {
		return 0
	}
	at := (start + hugePage - 1) &^ (hugePage - 1)
	if at > start {
		munmap(start, at-start)
	}
	if end, last := at+uintptr(size), start+uintptr(size+hugePage); last > end {
		munmap(end, last-end)
	}
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, at, uintptr(size), adviceHuge)
	touch(hostBytes(backends.Address(at), size))
	return backends.Address(at)
}

func unmapPages(at backends.Address, size int) { munmap(uintptr(at), uintptr(mappedSize(size))) }

func munmap(at, size uintptr) { _, _, _ = syscall.Syscall(syscall.SYS_MUNMAP, at, size, 0) }

// touch has the system find the pages.
func touch(memory []byte) {
	threads := 1
	if len(memory) >= touchedAlone {
		threads = min(runtime.GOMAXPROCS(0), mostTouching)
	}
	page := syscall.Getpagesize()
	part := (len(memory)/threads + hugePage - 1) &^ (hugePage - 1)
	var group sync.WaitGroup
	for from := 0; from < len(memory); from += part {
		group.Go(func() {
			for at := from; at < min(from+part, len(memory)); at += page {
				memory[at] = 0
			}
		})
	}
	group.Wait()
}
