package pyhamr

import (
	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// FirstAlternative returns the first of some names of runtimes, with commas between, that has a device
// which such a list as that of Accelerators allows, else "cpu" if that is one of the names, else "".
//
//hamr:blocking
func FirstAlternative(names, among string) (string, error) {
	return bridge.FirstAlternative(names, among)
}

// TakeCachedStream returns a stream of a device on which nothing is pending; it is given back by the
// end of its StreamLife.
//
//hamr:blocking
func TakeCachedStream(backend string, device int) (uint64, error) {
	taken, err := bridge.TakeCachedStream(backend, device)
	return uint64(taken), err
}

// TrimCachingAllocator gives back what such an allocator keeps.
//
//hamr:blocking
func TrimCachingAllocator(number uint64) (int, error) {
	return 0, bridge.TrimCachingAllocator(number)
}

// CloseCachingAllocator ends one; what is in use of it goes back later.
//
//hamr:blocking
func CloseCachingAllocator(number uint64) (int, error) {
	return 0, bridge.CloseCachingAllocator(number)
}

// WatchEvent has an eventfd written to when an event is over, and returns the ticket that TakeWatched returns then.
func WatchEvent(backend string, device int, event uint64, descriptor int) (uint64, error) {
	return bridge.WatchEvent(backend, device, backends.Event(event), descriptor)
}

// TakeWatched returns a ticket that is over, 0 if there is none.
func TakeWatched(descriptor int) uint64 { return bridge.TakeWatched(descriptor) }

// Unwatch ends a watch: nothing is written for it any more.
func Unwatch(ticket uint64) int {
	bridge.Unwatch(ticket)
	return 0
}
