package openmp

import "hamr/backends"

// HostReaches is true of the initial device's memory: it is the host's.
func (b *Backend) HostReaches(backends.Region) bool { return b.onHost }

// Reaches is true of managed memory that the host reaches, where the device is the host. The initial device's code
// cannot use other memory of another runtime, and no routine of OpenMP 4.5 tells about other devices.
func (b *Backend) Reaches(_ int, at backends.Region) (bool, error) {
	return b.onHost && at.Allocator.Kind() == backends.Managed && at.Allocator.ReachableFrom(backends.SpaceHost), nil
}
