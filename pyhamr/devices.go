package pyhamr

import "hamr/pyhamr/internal/bridge"

// DeviceCount returns how many devices a backend has.
func DeviceCount(backend string) (int, error) { return bridge.DeviceCount(backend) }

// Library returns the file of the vendor's library that a backend uses.
func Library(backend string) (string, error) { return bridge.Library(backend) }

// CurrentDevice returns the calling thread's current device.
func CurrentDevice(backend string) (int, error) { return bridge.CurrentDevice(backend) }

// Activate makes a device current for the calling thread; the result is for Restore.
func Activate(backend string, device int) (uint64, error) { return bridge.Activate(backend, device) }

// Restore ends what Activate began.
func Restore(backend string, before uint64) (int, error) { return 0, bridge.Restore(backend, before) }

// Reaches reports whether code in a space, on some device of its runtime's, can use memory at an address in place.
func Reaches(allocator, device int, address uint64, space int) (bool, error) {
	return bridge.Reaches(allocator, device, address, space)
}

// CanAccess reports whether a device can reach another one's memory.
func CanAccess(backend string, user, owner int) (bool, error) {
	return bridge.CanAccess(backend, user, owner)
}

// EnablePeer lets a device reach another one's memory; twice is no error.
func EnablePeer(backend string, user, owner int) (int, error) {
	return 0, bridge.EnablePeer(backend, user, owner)
}
