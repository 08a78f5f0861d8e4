// Package devices finds the devices whose memory processes can map.
package devices

import (
	"hamr/backends"
	"hamr/gobuffer"
)

// Each calls f with each device whose memory a runtime can map, until f returns false.
func Each(r *gobuffer.Runtime, f func(id backends.UUID, at backends.Region) bool) {
	for _, a := range backends.Allocators() {
		if a.Facts().Kind != backends.DeviceOnly {
			continue
		}
		b, err := r.Backend(a)
		if err != nil {
			continue
		}
		_, shares := backends.As[backends.Sharer](b)
		identified, ok := backends.As[backends.Identified](b)
		if !shares || !ok {
			continue
		}
		count, err := b.DeviceCount()
		if err != nil {
			continue
		}
		for device := range count {
			id, err := identified.Identity(device)
			if err == nil && !f(id, backends.Region{Allocator: a, Device: device}) {
				return
			}
		}
	}
}
