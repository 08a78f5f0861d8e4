package gobuffer

import (
	"hamr/backends"
	"hamr/gobuffer/internal/shares"
)

// SameDevice returns the number that another backend, given by name, has for a device of
// one backend; found is false if it does not have the device, or if one of the two runtimes cannot
// tell which devices it has. The error is a *backends.UnavailableError if a runtime is absent.
func (r *Runtime) SameDevice(backend string, device int, other string) (number int, found bool, err error) {
	id, known, err := r.identity(backend, device)
	if err != nil {
		return 0, false, err
	}
	b, err := r.Named(other)
	if err != nil || !known {
		return 0, false, err
	}
	count, err := b.DeviceCount()
	if err != nil {
		return 0, false, err
	}
	for number := range count {
		its, known, err := r.identity(other, number)
		if err != nil {
			return 0, false, err
		}
		if known && its == id {
			return number, true, nil
		}
	}
	return 0, false, nil
}

// identity is a device's UUID; known is false if its runtime cannot tell.
func (r *Runtime) identity(backend string, device int) (id backends.UUID, known bool, err error) {
	b, err := r.Named(backend)
	if err != nil {
		return id, false, err
	}
	count, err := b.DeviceCount()
	if err != nil {
		return id, false, err
	}
	if device < 0 || device >= count {
		return id, false, valueError("device", device, deviceNumbers(count, backend))
	}
	return shares.Identity(b, device)
}

// SettleContext waits for what was enqueued so far in the context that found is memory of,
// unless its backend works in that one itself. What the owner enqueues there later must
// be on a stream that it names.
func (r *Runtime) SettleContext(found backends.Location) error {
	if err := r.check(); err != nil {
		return err
	}
	if found.Context == 0 {
		return nil
	}
	b, err := r.Backend(found.Allocator)
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
