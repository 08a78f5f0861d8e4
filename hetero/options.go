package hetero

import (
	"cmp"
	"math"
	"slices"

	"hamr/backends"
	"hamr/gobuffer"
)

// Options are for new buffers of the context's: in the device's memory, with the context's stream for
// all work on them, none of which is waited for. The stream outlives the context; it lasts until
// Scheduler.Trim, before which such buffers are closed.
func (c *Context) Options() gobuffer.Options { return c.options(backends.DeviceOnly) }

// HostOptions are Options for buffers in host memory, page-locked where the backend has such memory.
func (c *Context) HostOptions() gobuffer.Options { return c.options(backends.Pinned) }

func (c *Context) options(kind backends.MemoryKind) gobuffer.Options {
	if c == nil || c.line == nil {
		return gobuffer.Options{}
	}
	o := gobuffer.Options{Allocator: backends.Malloc, Device: backends.HostDevice, Stream: c.line.stream,
		Transfer: gobuffer.Async}
	if a := c.line.cache.preferred(kind); a != backends.None {
		o.Allocator = a
	}
	if o.Allocator.Kind() != backends.Pageable {
		o.StreamOf = o.Allocator
	}
	if kind == backends.DeviceOnly {
		o.Device = c.line.cache.place.Device
	}
	return o
}

// Preferred returns the allocator of a device's own memory (backends.DeviceOnly) or of page-locked memory
// (backends.Pinned) that comes first in backends.Facts.Preference. Where the device has no such memory the
// error is a *gobuffer.ArgumentError.
func (s *Scheduler) Preferred(p Place, kind backends.MemoryKind) (backends.Allocator, error) {
	c, err := s.cacheOf(p)
	if err != nil {
		return backends.None, err
	}
	a := c.preferred(kind)
	if a == backends.None {
		return a, valueError("kind", kind, "one of which "+p.String()+" has memory")
	}
	return a, nil
}

// preferred returns the allocator of the backend's that comes first in backends.Facts.Preference, or
// None where the device has none of the kind.
func (c *cache) preferred(kind backends.MemoryKind) backends.Allocator {
	var list []backends.Allocator
	for _, a := range backends.Allocators() {
		if a.Backend() == c.place.Backend && a.Kind() == kind && c.supports(a) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return backends.None
	}
	return slices.MinFunc(list, func(a, b backends.Allocator) int { return cmp.Compare(preference(a), preference(b)) })
}

func (c *cache) supports(a backends.Allocator) bool {
	s, ok := backends.As[backends.Supporter](c.backend)
	return !ok || s.Supports(a, c.place.Device) == nil
}

// preference is last for what is no first choice of anybody's.
func preference(a backends.Allocator) int {
	for i, first := range slices.Concat(backends.Preferred(false), backends.Preferred(true)) {
		if first == a {
			return i
		}
	}
	return math.MaxInt
}
