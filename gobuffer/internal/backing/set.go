// Package backing finds the backends of a runtime by allocator and by name, and the devices that two of them have in
// common. It knows no memory.
package backing

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"hamr/backends"
	"hamr/gobuffer/internal/failures"
)

// Set is backends of different names. It never changes once made.
type Set struct {
	list   []backends.Backend
	byName map[string]backends.Backend
	serves [backends.MostAllocators]backends.Backend // nil if none does
	same   sync.Map                                  // numbers of devices in other runtimes, by question
}

// Fill makes s, the zero value, a set of backends, in order of preference. It probes none.
func (s *Set) Fill(list []backends.Backend) error {
	byName := make(map[string]backends.Backend, len(list))
	for _, b := range list {
		if b == nil {
			return failures.Value("backend", "nil", "what a backend's New returns")
		}
		if _, twice := byName[b.Name()]; twice {
			return failures.Value("backend", fmt.Sprintf("%q twice", b.Name()), "one of each name")
		}
		byName[b.Name()] = b
	}
	s.list, s.byName = list, byName
	for _, a := range backends.Allocators() {
		s.serves[a] = byName[a.Backend()]
	}
	return nil
}

// Made reports whether Fill was called.
func (s *Set) Made() bool { return s.byName != nil }

// List lists the backends in order of preference. The caller must not change it.
func (s *Set) List() []backends.Backend { return s.list }

// Names lists the names of the backends.
func (s *Set) Names() string {
	names := make([]string, len(s.list))
	for i, b := range s.list {
		names[i] = b.Name()
	}
	return strings.Join(names, ", ")
}

// Serves returns the backend that serves a, nil if there is none. a is one of backends.Allocators.
func (s *Set) Serves(a backends.Allocator) backends.Backend { return s.serves[a] }

// Backend returns the backend that serves a, probed.
func (s *Set) Backend(a backends.Allocator) (backends.Backend, error) {
	if a < 0 || int(a) >= len(s.serves) {
		return nil, failures.Value("allocator", a, "one of "+allocatorNames())
	}
	b := s.serves[a]
	if b == nil {
		if !a.Valid() {
			return nil, failures.Value("allocator", a, "one of "+allocatorNames())
		}
		return nil, &backends.UnavailableError{Backend: a.Backend(), Reason: "this build of hamr has no such backend"}
	}
	if err := b.Probe(); err != nil {
		return nil, err
	}
	return b, nil
}

func allocatorNames() string {
	var names []string
	for _, a := range backends.Allocators() {
		names = append(names, a.String())
	}
	return strings.Join(names, ", ")
}

// Named returns the backend with a name, probed.
func (s *Set) Named(name string) (backends.Backend, error) {
	b := s.byName[name]
	if b == nil {
		return nil, failures.Value("backend", fmt.Sprintf("%q", name), "one of "+s.Names())
	}
	return b, b.Probe()
}

// Has reports whether there is a backend with a name.
func (s *Set) Has(name string) bool { return s.byName[name] != nil }

// Device returns the device that memory of allocator a is taken from. For host memory, page-locked or not, that is
// HostDevice. For other memory it is an existing device, and HostDevice stands for the current one. a is b's.
func Device(b backends.Backend, a backends.Allocator, device int) (int, error) {
	kind := a.Kind()
	if kind == backends.Pageable {
		return backends.HostDevice, nil
	}
	if device == backends.HostDevice {
		if kind == backends.Pinned {
			return device, nil
		}
		return CurrentDevice(b)
	}
	count, err := b.DeviceCount()
	if err != nil {
		return 0, err
	}
	if device < 0 || device >= count {
		return 0, NoDevice(device, count, "allocator "+a.String())
	}
	if kind == backends.Pinned {
		return backends.HostDevice, nil
	}
	return device, nil
}

// NoDevice is the error of a device's number beyond what there is.
func NoDevice(device, count int, of string) error {
	return failures.Value("device", device, fmt.Sprintf("0 … %d for %s", count-1, of))
}

// CurrentDevice is the calling thread's, where the backend's runtime keeps one, else the first.
func CurrentDevice(b backends.Backend) (int, error) {
	if c, ok := backends.As[backends.Current](b); ok {
		return c.CurrentDevice()
	}
	return 0, nil
}

// CurrentDeviceOf is CurrentDevice of the backend that serves a.
func (s *Set) CurrentDeviceOf(a backends.Allocator) (int, error) {
	b, err := s.Backend(a)
	if err != nil {
		return 0, err
	}
	return CurrentDevice(b)
}

// Locate asks the backends whose memory is at an address. Memory that none knows is found as it is. If no backend that
// could tell is available, the error is that of the first one.
func (s *Set) Locate(found backends.Location) (backends.Location, error) {
	var absent error
	asked := false
	for _, b := range s.list {
		locator, ok := backends.As[backends.Locator](b)
		if !ok {
			continue
		}
		if err := b.Probe(); err != nil {
			if absent == nil {
				absent = err
			}
			continue
		}
		asked = true
		l, err := locator.Locate(found.Address)
		if err != nil || l.Allocator != backends.None {
			return l, err
		}
	}
	if !asked {
		return found, absent
	}
	return found, nil
}

// Preferred is the first of backends.Preferred that the machine has a device for, else malloc.
func (s *Set) Preferred(pinned bool) backends.Allocator {
	for _, a := range backends.Preferred(pinned) {
		b, err := s.Backend(a)
		if err != nil {
			continue
		}
		if n, err := b.DeviceCount(); err != nil || n == 0 {
			continue
		}
		if s, ok := backends.As[backends.Supporter](b); ok && s.Supports(a, 0) != nil {
			continue
		}
		if h, ok := backends.As[backends.HostDevices](b); ok && h.OnHost(0) {
			continue
		}
		return a
	}
	return backends.Temporaries(backends.SpaceHost)[0]
}

// SettleContext waits for the work enqueued so far in the context that found memory belongs to, unless its backend
// works in that context itself.
func (s *Set) SettleContext(found backends.Location) error {
	if found.Context == 0 {
		return nil
	}
	b, err := s.Backend(found.Allocator)
	if err != nil {
		return err
	}
	contexts, ok := backends.As[backends.Contexts](b)
	if !ok {
		return nil
	}
	own, err := contexts.Context(found.Device)
	if err != nil || own == found.Context {
		return err
	}
	return contexts.SynchronizeContext(found.Context)
}

// Temporaries are backends.Temporaries for code in a space; those whose memory costs less effort come first.
func Temporaries(space backends.Space, effort func(backends.Allocator) int) []backends.Allocator {
	list := slices.Clone(backends.Temporaries(space))
	slices.SortStableFunc(list, func(a, b backends.Allocator) int { return effort(a) - effort(b) })
	return list
}
