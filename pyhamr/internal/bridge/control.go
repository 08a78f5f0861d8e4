package bridge

import (
	"fmt"

	"hamr/backends"
	"hamr/gobuffer"
)

// ability returns a backend as the interface T, and the number of a device that exists; -1 stands for the current one.
func ability[T any](backend string, device int) (able T, number int, err error) {
	b, err := Runtime.Named(backend)
	if err != nil {
		return able, 0, err
	}
	able, ok := backends.As[T](b)
	if !ok {
		return able, 0, fmt.Errorf("the %s backend cannot do this", backend)
	}
	count, err := b.DeviceCount()
	if err != nil {
		return able, 0, err
	}
	if device == backends.HostDevice {
		if c, ok := backends.As[backends.Current](b); ok {
			device, err = c.CurrentDevice()
			return able, device, err
		}
		device = 0
	}
	if device < 0 || device >= count {
		err = &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "device", Value: fmt.Sprint(device),
			Accepted: fmt.Sprintf("0 … %d, the %s devices", count-1, backend)}
	}
	return able, device, err
}

// with runs f with a backend's ability; result is what f returns.
func with[T, R any](backend string, device int, f func(able T, device int) (R, error)) (result R, err error) {
	defer Guard(&err)
	able, number, err := ability[T](backend, device)
	if err != nil {
		return result, err
	}
	return f(able, number)
}

// do is with for what has no result.
func do[T any](backend string, device int, f func(able T, device int) error) error {
	_, err := with(backend, device, func(able T, device int) (struct{}, error) { return struct{}{}, f(able, device) })
	return err
}

// DeviceCount returns how many devices a backend has.
func DeviceCount(backend string) (count int, err error) {
	defer Guard(&err)
	b, err := Runtime.Named(backend)
	if err != nil {
		return 0, err
	}
	return b.DeviceCount()
}

// Library returns the file of a backend's runtime.
func Library(backend string) (string, error) {
	return with(backend, 0, func(l backends.LibraryReporter, _ int) (string, error) { return l.Library(), nil })
}

// CurrentDevice returns the calling thread's current device.
func CurrentDevice(backend string) (int, error) {
	return with(backend, backends.HostDevice, func(_ backends.Backend, device int) (int, error) { return device, nil })
}

// Activate makes a device current for the calling thread; the result is for Restore.
func Activate(backend string, device int) (before uint64, err error) {
	return with(backend, device, func(c backends.Current, device int) (uint64, error) {
		before, err := c.Activate(device)
		return uint64(before), err
	})
}

// ActivateIfCurrent is Activate of a backend whose threads have a current device; of others it does
// nothing and reports false.
func ActivateIfCurrent(backend string, device int) (before uint64, has bool, err error) {
	defer Guard(&err)
	b, err := Runtime.Named(backend)
	if err != nil {
		return 0, false, err
	}
	if _, has = backends.As[backends.Current](b); !has {
		return 0, false, nil
	}
	before, err = Activate(backend, device)
	return before, err == nil, err
}

// Restore ends what Activate began.
func Restore(backend string, before uint64) error {
	return do(backend, 0, func(c backends.Current, _ int) error { return c.Restore(uintptr(before)) })
}

// Locate says which memory an address is.
func Locate(address uint64) (found backends.Location, err error) {
	defer Guard(&err)
	return Runtime.Locate(backends.Address(address))
}

// CanAccess reports whether a device can reach another one's memory.
func CanAccess(backend string, from, to int) (bool, error) {
	return with(backend, to, func(backends.Peers, int) (bool, error) {
		return with(backend, from, func(p backends.Peers, from int) (bool, error) { return p.CanAccess(from, to) })
	})
}

// EnablePeer lets a device reach another one's memory; twice is no error.
func EnablePeer(backend string, from, to int) error {
	return do(backend, from, func(p backends.Peers, from int) error { return p.Enable(from, to) })
}

// DisablePeer takes one EnablePeer back; nothing, if there is none.
func DisablePeer(backend string, from, to int) error {
	return do(backend, from, func(p backends.Peers, from int) error { return p.Disable(from, to) })
}

// MemoryInfo returns how many bytes of a device are free, and how many there are.
func MemoryInfo(backend string, device int) (free, total int64, err error) {
	pair, err := with(backend, device, func(r backends.MemoryReporter, device int) (pair [2]int64, err error) {
		pair[0], pair[1], err = r.MemoryInfo(device)
		return pair, err
	})
	return pair[0], pair[1], err
}

// Describe returns pairs of a name and a text: what is known of a device. Some may be known in spite of an error.
func Describe(backend string, device int) ([][2]string, error) {
	return with(backend, device, func(d backends.Describer, device int) ([][2]string, error) { return d.Describe(device) })
}
