package backends

import (
	"fmt"
	"strconv"
	"sync"
)

// Tag stands for a name that memory is paused and resumed by. NoTag is none: such memory is never paused.
type Tag uint32

// NoTag is the zero value.
const NoTag Tag = 0

var tags struct {
	sync.Mutex
	names   []string // that of Tag n is n-1
	numbers map[string]Tag
}

// TagOf returns the Tag of a name. A name has the same one until the process ends; that of "" is NoTag.
func TagOf(name string) Tag {
	if name == "" {
		return NoTag
	}
	tags.Lock()
	defer tags.Unlock()
	if known, is := tags.numbers[name]; is {
		return known
	}
	if tags.numbers == nil {
		tags.numbers = map[string]Tag{}
	}
	tags.names = append(tags.names, name)
	made := Tag(len(tags.names))
	tags.numbers[name] = made
	return made
}

// String returns the name.
func (t Tag) String() string {
	tags.Lock()
	defer tags.Unlock()
	if t == NoTag || int(t) > len(tags.names) {
		return ""
	}
	return tags.names[t-1]
}

// Keep says where contents are while their memory is paused.
type Keep int32

// The values of Keep.
const (
	KeepNothing Keep = iota // after Resume they are not initialised
	KeepHost                // in page-locked memory
	KeepDisk                // in a file without a name
)

var keeps = [...]string{KeepNothing: "nothing", KeepHost: "host", KeepDisk: "disk"}

// String returns "nothing", "host" or "disk".
func (k Keep) String() string {
	if k >= 0 && int(k) < len(keeps) {
		return keeps[k]
	}
	return "Keep(" + strconv.Itoa(int(k)) + ")"
}

// ParseKeep is the inverse of Keep.String; ok is false for other names.
func ParseKeep(name string) (k Keep, ok bool) {
	for i, each := range keeps {
		if each == name {
			return Keep(i), true
		}
	}
	return KeepNothing, false
}

// PausedError says that memory has addresses, and nothing behind them at present.
type PausedError struct{ Tag Tag }

func (e *PausedError) Error() string {
	return fmt.Sprintf("memory of %q is paused: its addresses are kept, and nobody can use it before %q is resumed",
		e.Tag, e.Tag)
}

// NotKeptError says that there was no room for contents, or no file.
type NotKeptError struct {
	Tag    Tag
	Size   int64 // bytes
	Folder string
	Reason error
}

func (e *NotKeptError) Error() string {
	return fmt.Sprintf("%d bytes of %q are not kept in a file of %s: %v", e.Size, e.Tag, e.Folder, e.Reason)
}

// Unwrap returns what went wrong.
func (e *NotKeptError) Unwrap() error { return e.Reason }

// Paused is what is known of the memory of a tag on a device.
type Paused struct {
	Tag    Tag
	Device int   // HostDevice if it is paused and has no memory
	Bytes  int64 // of the device's memory: in use or, while it is paused, given back
	Is     bool  // it is paused
	Keep   Keep  // of memory that is paused
	Locked int64 // bytes of page-locked memory that the tag has on all devices, for contents or for the next Pause
}

// Pauser is implemented by backends that can give back what lies behind addresses, and put it there again. A Request
// with a Tag takes such memory, of allocators that the backend says. Memory that is paused can be freed.
type Pauser interface {
	// Pauses reports whether memory of allocator a can be paused. It never changes.
	Pauses(a Allocator) bool
	// Pause gives back the memory of a tag on all devices. It waits for all work on these devices, other libraries'
	// included, and for calls that Hold memory. folder is where KeepDisk makes its file; "" is the system's for such
	// files. A tag that is paused in the same way stays as it is. After an error all is as before.
	Pause(t Tag, keep Keep, folder string) error
	// Resume takes memory for a tag again, at the same addresses and with what was kept. If memory ran out, the error is
	// an *OutOfMemoryError. After an error all is paused as before. A tag that is not paused stays as it is.
	Resume(t Tag) error
	// IsPaused reports whether memory of a tag is paused.
	IsPaused(t Tag) bool
	// Hold keeps memory at addresses from being paused until release is called. The error is a *PausedError for memory
	// that is paused. Other memory passes.
	Hold(at ...Region) (release func(), err error)
	// Paused lists the tags that have memory, or are paused, by device.
	Paused() []Paused
}
