package pyhamr

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// StoreAllocator returns the allocator of objects that are where memory of another one is.
func StoreAllocator(allocator, device int) int {
	return int(bridge.StoreAllocator(backends.Allocator(allocator), device))
}
