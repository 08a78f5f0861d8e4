package gobuffer

import (
	"hamr/backends"
	"hamr/gobuffer/internal/backing"
)

// SameDevice returns the number that another backend, given by name, has for a device of one backend. found is false if
// the other backend does not have the device, or if one of the two runtimes cannot identify its devices. If a runtime
// is absent, the error is a *backends.UnavailableError.
func (r *Runtime) SameDevice(backend string, device int, other string) (number int, found bool, err error) {
	if err := r.check(); err != nil {
		return 0, false, err
	}
	return r.backends.SameDevice(backend, device, other)
}

// SettleContext waits for the work enqueued so far in the context that the found memory belongs to, unless its backend
// works in that context itself. The owner must name a stream for what it enqueues there later.
func (r *Runtime) SettleContext(found backends.Location) error {
	if err := r.check(); err != nil {
		return err
	}
	return r.backends.SettleContext(found)
}

// Reaches reports whether code in space s, on some device of its runtime, can use another runtime's memory, or the
// host's, in place. Where the allocator does not say, the backends are asked.
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
	said, err := r.backends.ReachedBy(at, s, backing.AnyDevice)
	return said.Is, err
}
