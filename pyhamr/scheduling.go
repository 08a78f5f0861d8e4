package pyhamr

import (
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

// TakeCachedStream returns a stream of a device on which nothing is pending; it is given back by the
// end of its StreamLife.
//
//hamr:blocking
//hamr:blocking
func TakeCachedStream(backend string, device int) (uint64, error) {
	taken, err := bridge.TakeCachedStream(backend, device)
	return uint64(taken), err
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
