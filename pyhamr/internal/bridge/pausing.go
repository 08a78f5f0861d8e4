package bridge

import (
	"sync/atomic"
	"unsafe"

	"hamr/backends"
	"hamr/gobuffer"
)

// ThreadTag sets the tag of memory that the calling thread makes, and returns the one before; a number below zero sets
// nothing. Package capi sets it.
var ThreadTag = func(tag int64) (before int64) { return 0 }

var pausable = (*atomic.Int64)(unsafe.Pointer(pausableWord()))

func pausableWord() *byte {
	at := Runtime.PausableWord()
	return *(**byte)(unsafe.Pointer(&at))
}

// tagFor is the tag of memory that the calling thread makes by an allocator.
func tagFor(a backends.Allocator) backends.Tag {
	if a != backends.CUDAVMM {
		return backends.NoTag
	}
	return tagOfThread()
}

func tagOfThread() backends.Tag {
	if pausable.Load() == 0 {
		return backends.NoTag
	}
	return backends.Tag(ThreadTag(-1))
}

// EnterTag makes a name that of memory that the calling thread makes. It returns the number of the one before, for
// LeaveTag.
func EnterTag(name string) (before int, err error) {
	defer Guard(&err)
	t, err := Runtime.Tag(name)
	if err != nil {
		return 0, err
	}
	return int(ThreadTag(int64(t))), nil
}

// LeaveTag restores what EnterTag has returned.
func LeaveTag(before int) { ThreadTag(int64(before)) }

// Pause gives back the devices' memory of a tag, see gobuffer.
func Pause(name, keep, folder string) (err error) {
	defer Guard(&err)
	how, known := backends.ParseKeep(keep)
	if !known {
		return &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "keep", Value: `"` + keep + `"`,
			Accepted: "nothing, host, disk"}
	}
	return Runtime.Pause(name, how, folder)
}

// Resume takes it again.
func Resume(name string) (err error) {
	defer Guard(&err)
	return Runtime.Resume(name)
}

// PausableMemory lists the memory that can be paused: the tag, the device, bytes, whether it is paused, what is kept,
// and page-locked bytes of the tag.
func PausableMemory() (rows Rows, err error) {
	defer Guard(&err)
	for _, p := range Runtime.Pausable() {
		rows = append(rows, []any{p.Tag.String(), p.Device, p.Bytes, p.Is, p.Keep.String(), p.Locked})
	}
	return rows, nil
}
