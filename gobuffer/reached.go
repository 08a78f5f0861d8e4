package gobuffer

import (
	"errors"
	"fmt"
	"hamr/backends"
)

// anyDevice stands for all devices of a runtime, where only whether there is one matters.
const anyDevice = -1

// reached is whether code of another runtime's uses some memory as it is, and why.
type reached struct {
	is      bool
	runtime backends.Backend // whose code it is, probed; nil where there is none, and code of that kind is the memory's own runtime's
	why     string
}

func (said *reached) because() string {
	if said == nil {
		return ""
	}
	return ": " + said.why
}

type sameDevice struct {
	backend string
	device  int
	other   string
}

// counterpart is SameDevice, asked once: a runtime that cannot tell has no device of another's.
func (r *Runtime) counterpart(backend string, device int, other string) (number int, found bool, err error) {
	question := sameDevice{backend, device, other}
	if told, ok := r.same.known.Load(question); ok {
		number = told.(int)
		return number, number >= 0, nil
	}
	number, found, err = r.SameDevice(backend, device, other)
	switch {
	case err != nil:
		return 0, false, err
	case !found:
		number = -1
	}
	r.same.known.Store(question, number)
	return number, found, nil
}

// reachedBy reports whether code in space s on one of its devices, as its own runtime numbers them,
// uses memory in place that is Allocator.SharedWith it.
func (r *Runtime) reachedBy(at backends.Region, s backends.Space, device int) (reached, error) {
	home := at.Allocator.Backend()
	b := r.byName[s.Backend()]
	var absent error
	if b != nil {
		absent = b.Probe()
	}
	if absent != nil && !errors.Is(absent, backends.ErrUnavailable) {
		return reached{}, absent
	}
	if b == nil || absent != nil {
		// Code of that kind that is there all the same was made for the vendor of the memory.
		_, known, err := r.identity(home, at.Device)
		why := fmt.Sprintf("there is no %s runtime, and %s ", s, home)
		if known = known && err == nil; known {
			return reached{is: device == anyDevice || device == at.Device || at.Allocator.EveryDevice(), why: why + "knows which device it has"}, nil
		}
		return reached{why: why + "cannot tell which device it has"}, nil
	}
	count, err := b.DeviceCount()
	if err != nil {
		return reached{}, err
	}
	if device != anyDevice && (device < 0 || device >= count) {
		return reached{}, valueError("device", device, deviceNumbers(count, s.Backend()))
	}
	first, behind := device, device+1
	if device == anyDevice {
		first, behind = 0, count
	}
	said := reached{runtime: b, why: fmt.Sprintf("%s has no device", s)}
	for each := first; each < behind; each++ {
		if said.is, said.why, err = r.reachedOn(b, each, at); said.is || err != nil {
			break
		}
	}
	return said, err
}

// reachedOn is reachedBy on one device.
func (r *Runtime) reachedOn(b backends.Backend, device int, at backends.Region) (is bool, why string, err error) {
	home := at.Allocator.Backend()
	number, found, err := r.counterpart(b.Name(), device, home)
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

// Reaches reports whether code in space s, on some device of its runtime's, can use memory in place
// that is another runtime's or the host's: the backends are asked where the allocator does not say.
func (r *Runtime) Reaches(at backends.Region, s backends.Space) (bool, error) {
	if err := r.check(); err != nil {
		return false, err
	}
	if !at.Allocator.SharedWith(s) {
		return at.Allocator.ReachableFrom(s), nil
	}
	if _, err := r.Backend(at.Allocator); err != nil {
		return false, err
	}
	said, err := r.reachedBy(at, s, anyDevice)
	return said.is, err
}
