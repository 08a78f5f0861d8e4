package backing

import (
	"errors"
	"fmt"

	"hamr/backends"
)

// AnyDevice stands for all devices of a runtime, where only whether there is one matters.
const AnyDevice = -1

// Reached is whether code of another runtime's uses some memory as it is, and why.
type Reached struct {
	Is bool
	// The probed runtime whose code it is. nil: there is none, and code of that kind belongs to the memory's own runtime.
	Runtime backends.Backend
	Why     string
}

// Because is the reason for a message, if there is one.
func (said *Reached) Because() string {
	if said == nil {
		return ""
	}
	return ": " + said.Why
}

// SameDevice returns the number that another backend, given by name, has for a device of one backend. found is false if
// the other backend does not have the device, or if one of the two runtimes cannot identify its devices. If a runtime
// is absent, the error is a *backends.UnavailableError.
func (s *Set) SameDevice(backend string, device int, other string) (number int, found bool, err error) {
	id, known, err := s.identity(backend, device)
	if err != nil {
		return 0, false, err
	}
	b, err := s.Named(other)
	if err != nil || !known {
		return 0, false, err
	}
	count, err := b.DeviceCount()
	if err != nil {
		return 0, false, err
	}
	for number := range count {
		its, known, err := s.identity(other, number)
		if err != nil {
			return 0, false, err
		}
		if known && its == id {
			return number, true, nil
		}
	}
	return 0, false, nil
}

// identity is a device's UUID. known is false if its runtime cannot tell.
func (s *Set) identity(backend string, device int) (id backends.UUID, known bool, err error) {
	b, err := s.Named(backend)
	if err != nil {
		return id, false, err
	}
	count, err := b.DeviceCount()
	if err != nil {
		return id, false, err
	}
	if device < 0 || device >= count {
		return id, false, NoDevice(device, count, backend)
	}
	return Identity(b, device)
}

type sameDevice struct {
	backend string
	device  int
	other   string
}

// counterpart is SameDevice, asked once. A runtime that cannot tell shares no device with another.
func (s *Set) counterpart(backend string, device int, other string) (number int, found bool, err error) {
	question := sameDevice{backend, device, other}
	if told, ok := s.same.Load(question); ok {
		number = told.(int)
		return number, number >= 0, nil
	}
	number, found, err = s.SameDevice(backend, device, other)
	switch {
	case err != nil:
		return 0, false, err
	case !found:
		number = -1
	}
	s.same.Store(question, number)
	return number, found, nil
}

// ReachedBy reports whether code in a space on one of its devices uses memory in place. The device is numbered as its
// own runtime does, and the memory's allocator is SharedWith the space.
func (s *Set) ReachedBy(at backends.Region, space backends.Space, device int) (Reached, error) {
	home := at.Allocator.Backend()
	b := s.byName[space.Backend()]
	var absent error
	if b != nil {
		absent = b.Probe()
	}
	if absent != nil && !errors.Is(absent, backends.ErrUnavailable) {
		return Reached{}, absent
	}
	if b == nil || absent != nil {
		// Code of that kind that exists all the same was made for the vendor of the memory.
		_, known, err := s.identity(home, at.Device)
		why := fmt.Sprintf("there is no %s runtime, and %s ", space, home)
		if known = known && err == nil; known {
			is := device == AnyDevice || device == at.Device || at.Allocator.EveryDevice()
			return Reached{Is: is, Why: why + "knows which device it has"}, nil
		}
		return Reached{Why: why + "cannot tell which device it has"}, nil
	}
	count, err := b.DeviceCount()
	if err != nil {
		return Reached{}, err
	}
	if device != AnyDevice && (device < 0 || device >= count) {
		return Reached{}, NoDevice(device, count, space.Backend())
	}
	first, behind := device, device+1
	if device == AnyDevice {
		first, behind = 0, count
	}
	said := Reached{Runtime: b, Why: fmt.Sprintf("%s has no device", space)}
	for each := first; each < behind; each++ {
		if said.Is, said.Why, err = s.reachedOn(b, each, at); said.Is || err != nil {
			break
		}
	}
	return said, err
}

// reachedOn is ReachedBy on one device.
func (s *Set) reachedOn(b backends.Backend, device int, at backends.Region) (is bool, why string, err error) {
	home := at.Allocator.Backend()
	number, found, err := s.counterpart(b.Name(), device, home)
	if err != nil {
		return false, "", err
	}
	here := fmt.Sprintf("device %d of %s", device, b.Name())
	if found {
		is = number == at.Device || at.Allocator.EveryDevice()
		return is, fmt.Sprintf("%s is device %d of %s", here, number, home), nil
	}
	if able, ok := backends.As[backends.Reacher](b); ok {
		if is, err = able.Reaches(device, at); is || err != nil {
			return is, b.Name() + " says that it reaches the memory from " + here, err
		}
	}
	return false, fmt.Sprintf("%s is no device of %s, and does not reach the memory", here, home), nil
}

// Identity is the UUID of a backend's device; known is false if its runtime cannot tell.
func Identity(b backends.Backend, device int) (id backends.UUID, known bool, err error) {
	able, ok := backends.As[backends.Identified](b)
	if !ok {
		return id, false, nil
	}
	id, err = able.Identity(device)
	if errors.Is(err, errors.ErrUnsupported) {
		return id, false, nil
	}
	return id, err == nil, err
}
