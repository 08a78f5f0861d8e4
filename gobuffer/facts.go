package gobuffer

import (
	"fmt"

	"hamr/arrayiface"
	"hamr/backends"
)

// Type returns what one element is.
func (a *Array) Type() arrayiface.ElementType {
	if !a.live() {
		return arrayiface.Invalid
	}
	return a.layout.Type
}

// Layout returns type, shape and strides in bytes. The caller must not change its slices.
func (a *Array) Layout() arrayiface.Layout {
	if !a.live() {
		return arrayiface.Layout{}
	}
	return a.layout
}

// Size returns the number of elements.
func (a *Array) Size() int {
	if !a.live() {
		return 0
	}
	return a.layout.Count()
}

// Capacity returns how many elements fit without new memory.
func (a *Array) Capacity() int {
	if !a.live() {
		return 0
	}
	return a.room
}

// Address returns where element zero is, in the owner's address space; zero if there is no memory.
func (a *Array) Address() backends.Address {
	if !a.live() {
		return 0
	}
	return a.address
}

// Memory returns the memory without a new reference, or nil.
func (a *Array) Memory() *Memory {
	if !a.live() {
		return nil
	}
	return a.memory
}

// Allocator returns where the memory came from, and where new memory will.
func (a *Array) Allocator() backends.Allocator {
	if !a.live() {
		return backends.None
	}
	return a.options.Allocator
}

// Owner returns the device that owns the memory, or backends.HostDevice.
func (a *Array) Owner() int {
	if !a.live() {
		return backends.HostDevice
	}
	return a.options.Device
}

// ReadOnly reports whether the contents must not be written.
func (a *Array) ReadOnly() bool { return a.live() && a.fixed }

// Stream returns the stream that movements are enqueued on.
func (a *Array) Stream() backends.Stream {
	if !a.live() {
		return 0
	}
	return a.options.Stream
}

// Transfer returns which movements are waited for.
func (a *Array) Transfer() Transfer {
	if !a.live() {
		return 0
	}
	return a.options.Transfer
}

// Options returns what new memory would be taken from.
func (a *Array) Options() Options {
	if !a.live() {
		return Options{Allocator: backends.None, Device: backends.HostDevice}
	}
	return a.options
}

// String is for messages; Text prints the elements.
func (a *Array) String() string {
	switch {
	case a == nil:
		return "<nil>"
	case a.runtime == nil:
		return "buffer that was not made"
	case a.closed:
		return "closed buffer"
	}
	return fmt.Sprintf("buffer of %d %s (allocator %s, owner %d)", a.layout.Count(), a.layout.Type, a.options.Allocator,
		a.options.Device)
}
