package pyhamr

import (
	"fmt"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/pyhamr/internal/bridge"
)

// Configure sets what the settings of an environment variable's name are taken
// for: Go does not see what Python puts into the environment later.
func Configure(name, value string) int {
	bridge.Settings.Set(name, value)
	return 0
}

// ability returns a backend as the interface T, and the number of a device that
// exists; -1 stands for the current one.
func ability[T any](backend string, device int) (b backends.Backend, able T, number int, err error) {
	if b, err = bridge.Runtime.Named(backend); err != nil {
		return b, able, 0, err
	}
	able, ok := backends.As[T](b)
	if !ok {
		return b, able, 0, fmt.Errorf("the %s backend cannot do this", backend)
	}
	count, err := b.DeviceCount()
	if err != nil {
		return b, able, 0, err
	}
	if device == backends.HostDevice {
		if c, ok := backends.As[backends.Current](b); ok {
			device, err = c.CurrentDevice()
			return b, able, device, err
		}
		device = 0
	}
	if device < 0 || device >= count {
		err = &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: "device", Value: fmt.Sprint(device),
			Accepted: fmt.Sprintf("0 … %d, the %s devices", count-1, backend)}
	}
	return b, able, device, err
}

// with runs f with a backend's ability; result is what f returns.
func with[T, R any](backend string, device int, f func(able T, device int) (R, error)) (result R, err error) {
	_, err = run(func() error {
		_, able, number, err := ability[T](backend, device)
		if err == nil {
			result, err = f(able, number)
		}
		return err
	})
	return result, err
}

// CurrentDevice returns the calling thread's current device.
func CurrentDevice(backend string) (int, error) {
	return with(backend, -1, func(_ backends.Backend, device int) (int, error) { return device, nil })
}

// Activate makes a device current for the calling thread; the result is for
// Restore.
func Activate(backend string, device int) (uint64, error) {
	return with(backend, device, func(c backends.Current, device int) (uint64, error) {
		before, err := c.Activate(device)
		return uint64(before), err
	})
}

// Restore ends what Activate began.
func Restore(backend string, before uint64) (int, error) {
	return with(backend, 0, func(c backends.Current, _ int) (int, error) { return 0, c.Restore(uintptr(before)) })
}

// Locate returns a JSON object: allocator (or null where no runtime knows the
// address), device, base and size of the allocation (0 where the runtime cannot
// tell).
func Locate(address uint64) (string, error) {
	type row struct {
		Allocator *string `json:"allocator"`
		Device    int     `json:"device"`
		Base      uint64  `json:"base"`
		Size      int     `json:"size"`
	}
	var found row
	_, err := run(func() error {
		l, err := bridge.Runtime.Locate(backends.Address(address))
		if err != nil {
			return err
		}
		found = row{nil, l.Device, uint64(l.Base), l.Size}
		if l.Allocator != backends.None {
			name := l.Allocator.String()
			found.Allocator = &name
		}
		return nil
	})
	return encode(found), err
}

// CanAccess reports whether a device can reach another one's memory.
func CanAccess(backend string, from, to int) (bool, error) {
	if _, _, _, err := ability[backends.Peers](backend, to); err != nil {
		return with(backend, to, func(backends.Peers, int) (bool, error) { return false, nil })
	}
	return with(backend, from, func(p backends.Peers, from int) (bool, error) { return p.CanAccess(from, to) })
}

// EnablePeer lets a device reach another one's memory; twice is no error.
func EnablePeer(backend string, from, to int) (int, error) {
	return with(backend, from, func(p backends.Peers, from int) (int, error) { return 0, p.Enable(from, to) })
}

// MemoryInfo returns "FREE TOTAL", in bytes.
func MemoryInfo(backend string, device int) (string, error) {
	return with(backend, device, func(r backends.MemoryReporter, device int) (string, error) {
		free, total, err := r.MemoryInfo(device)
		return fmt.Sprintf("%d %d", free, total), err
	})
}

// Describe returns a JSON array of pairs: what is known of a device.
func Describe(backend string, device int) (string, error) {
	return with(backend, device, func(d backends.Describer, device int) (string, error) {
		facts, err := d.Describe(device)
		return encode(facts), err
	})
}
