package pyhamr

import (
	"fmt"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// Accelerators returns the devices that work may run on, with commas between: those that such a list
// names or, where that is empty, HAMR_ACCELERATORS. distinct leaves out those that another runtime
// before them shows, too.
//
//hamr:blocking
func Accelerators(among string, distinct bool) (string, error) {
	return bridge.Accelerators(among, distinct)
}

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

// NewCachingAllocator returns the number of a new allocator that keeps memory for reuse, and which
// allocator's memory that is, with a space between: the one given or, if that is -1, what is preferred
// on the device. limit 0 is CMSSW's rule, -1 none.
//
//hamr:blocking
func NewCachingAllocator(allocator int, backend string, device int, pinned bool, limit int) (string, error) {
	number, of, err := bridge.NewCachingAllocator(backends.Allocator(allocator), backend, device, pinned, int64(limit))
	return fmt.Sprint(number, int(of)), err
}

// CachingStatistics returns the numbers of such an allocator's statistics.
func CachingStatistics(number uint64) (string, error) { return bridge.CachingStatistics(number) }

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

// WatchEvent has an eventfd written to when an event is over, and returns the ticket that TakeWatched
// returns then.
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

// CachedPlaces returns a line for each device whose streams or events scheduling has used: its name, and
// of streams and of events how many there are, are kept and are handed out, and how often one kept was.
func CachedPlaces() string { return bridge.CachedPlaces() }
