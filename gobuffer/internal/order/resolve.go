package order

import (
	"fmt"

	"hamr/backends"
	"hamr/gobuffer/internal/failures"
)

// Resolve turns a stream that may be used on a device, or with page-locked memory on any, into one that means the
// same from every thread.
func Resolve(streams backends.Streams, kind backends.MemoryKind, device int, s backends.Stream) (backends.Stream, error) {
	if s != 0 {
		number, err := streams.StreamDevice(s)
		switch {
		case err != nil:
			return 0, err
		case number < 0:
		case kind == backends.Pinned:
			device = number
		case number != device:
			return 0, failures.Value("stream", fmt.Sprintf("%#x of device %d", uintptr(s), number), fmt.Sprintf("a stream of device %d, where the memory is", device))
		}
	}
	return streams.Resolve(device, s)
}
