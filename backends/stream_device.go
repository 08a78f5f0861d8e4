package backends

import "errors"

// ErrNoStream is returned for a handle that is certainly no stream's.
var ErrNoStream = errors.New("there is no such stream")

// StreamLocator is implemented by backends that can tell where a stream is.
type StreamLocator interface {
	// StreamDevice returns the number of the device that a stream belongs to, which is
	// the calling thread's current one for the special streams, or an error that is
	// ErrNoStream. A handle whose stream has ended need not be noticed: what a vendor's
	// runtime does when it is asked of one is undefined.
	StreamDevice(s Stream) (int, error)
}
