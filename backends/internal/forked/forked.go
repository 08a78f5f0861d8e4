// Package forked tells whether a runtime was in use before this process was forked, for runtimes
// that neither survive that nor can say so.
//
// A forked child has a fresh copy of this program's library, which knows nothing of what the
// parent did. What both have are the parent's mappings: the mark is one, whose name tells the
// process that has made it. It ends with the process, and at exec.
package forked

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const maps = "/proc/self/maps"

// Mark notes that this process uses a runtime from now on. If it fails, Since finds nothing.
func Mark(runtime string) error {
	file, err := unix.MemfdCreate(nameOf(runtime)+fmt.Sprint(os.Getpid()), unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	size := os.Getpagesize()
	if err := unix.Ftruncate(file, int64(size)); err != nil {
		return err
	}
	_, err = unix.MmapPtr(file, 0, unsafe.Pointer(nil), uintptr(size), unix.PROT_NONE, unix.MAP_SHARED)
	return err
}

// Since reports whether another process, which this one was forked from, has marked the runtime.
func Since(runtime string) bool {
	text, err := os.ReadFile(maps)
	return err == nil && inherited(string(text), runtime, os.Getpid())
}

func inherited(maps, runtime string, self int) bool {
	own := fmt.Sprint(self)
	for line := range strings.Lines(maps) {
		_, rest, found := strings.Cut(line, "/memfd:"+nameOf(runtime))
		if !found {
			continue
		}
		if maker, _, _ := strings.Cut(strings.TrimSpace(rest), " "); maker != own {
			return true
		}
	}
	return false
}

func nameOf(runtime string) string { return "hamr-uses-" + runtime + "-" }
