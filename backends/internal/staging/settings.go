package staging

import (
	"errors"
	"math"
	"runtime"

	"hamr/backends/internal/setting"
)

// The settings, as names of environment variables. They are the same for every backend.
const (
	// ThreadsSetting is how many threads copy for the device. 0 leaves all copies to the driver. The default is one less
	// than the processors that the process may use, but at most 3 to 8, by size and direction, and 15 where memory is
	// new.
	ThreadsSetting = "HAMR_COPY_THREADS"
	// ChunkSetting is the size of the pieces that such copies are cut into, and of the smallest copy that is cut. The
	// default goes by the size, and begins with a mebibyte.
	ChunkSetting = "HAMR_COPY_CHUNK"
	// PinnedSetting bounds the page-locked memory that is held for such copies, in bytes. The default is 128 MiB.
	PinnedSetting = "HAMR_PINNED_LIMIT"
	// TuningSetting is the file with what was measured, in place of the user's file for the machine. "0" is no file.
	TuningSetting = "HAMR_TUNING"
)

// Configure reads the settings of a backend. lookup has "" for what is not set; model says which
// device one is, for what was found by measuring such devices.
func (e *Engine) Configure(backend string, lookup func(string) string, model func(device int) (Model, error)) error {
	e.backend, e.lookup, e.model = backend, lookup, model
	return errors.Join(
		e.read(ThreadsSetting, "a number", &e.Threads),
		e.read(ChunkSetting, "a number of bytes", &e.Chunk),
		e.read(PinnedSetting, "a number of bytes", &e.Limit))
}

func (e *Engine) read(name, what string, into *int) error {
	n, set, err := setting.Number(e.lookup, name, what, 0, math.MaxInt)
	switch {
	case err != nil || !set:
		return err
	case n == 0:
		*into = -1 // zero is the word for no choice
	default:
		*into = int(n)
	}
	return nil
}

// off reports whether all copies are left to the driver.
func (e *Engine) off() bool { return e.Threads < 0 || e.Limit < 0 }

// several reports whether there are threads to copy beside the caller's.
func (e *Engine) several() bool { return e.Threads > 0 || runtime.GOMAXPROCS(0) > 1 }

// Serves reports whether a transfer of that many bytes is worth staging. For small ones it asks nothing.
func (e *Engine) Serves(device, size int, up bool) bool {
	switch {
	case e.off():
		return false
	case e.Chunk > 0:
		return size >= e.Chunk && e.several()
	case size < smallestTuned:
		return false
	}
	if from := e.choice(device, up).From; from != 0 {
		return from > 0 && size >= from
	}
	return size >= smallest && e.several()
}

// Gathers reports whether a transfer of that many parts is worth staging. One thread is faster than a driver that
// gets each part, unless the parts are large.
func (e *Engine) Gathers(size, parts int) bool {
	return !e.off() && (e.Chunk > 0 || e.several() || size/parts <= smallestGathered)
}

// threads returns how many may copy beside the caller's, before it is known how many there are
// pieces for, and how many processors. Where the memory is new, more do.
func (e *Engine) threads(device, size int, up, isFresh bool) int {
	if e.Threads > 0 {
		return e.Threads
	}
	n := usual(size, up)
	if size >= smallestTuned {
		if tuned := e.choice(device, up).Threads; tuned > 0 {
			n = tuned
		}
	}
	if isFresh {
		n = max(n, mostFresh)
	}
	return n
}

// usual is threads without a choice.
func usual(size int, up bool) int {
	for _, s := range steps {
		if size >= s.from && up {
			return s.up
		} else if size >= s.from {
			return s.down
		}
	}
	return 0
}

// workers returns how many goroutines copy beside the caller's.
func (e *Engine) workers(pieces, threads int) int {
	if e.Threads == 0 {
		threads = min(threads, runtime.GOMAXPROCS(0)-1)
	}
	if pieces < 2 {
		return 0 // there is nothing for others to do meanwhile
	}
	return max(min(threads, pieces/2-1), 1)
}
