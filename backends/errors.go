package backends

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnavailable is what every *UnavailableError is, for errors.Is.
var ErrUnavailable = errors.New("backend unavailable")

// ErrNoStream is returned for a handle that is certainly no stream's.
var ErrNoStream = errors.New("there is no such stream")

// ErrCapturing says that the default stream can be neither queried nor ordered with other work while another stream
// is captured into a graph.
var ErrCapturing = errors.New("a stream is being captured")

// Why Timer.Elapsed cannot tell the time of an event.
var (
	ErrUntimed     = errors.New("an event was made without timing")
	ErrNotRecorded = errors.New("an event was never recorded")
	ErrNotDone     = errors.New("the work that an event stands for is not done yet")
)

// UnavailableError says that a runtime is absent on this machine and why.
type UnavailableError struct {
	Backend string   // "cuda"
	Tried   []string // the library names looked for, in order
	Reason  string   // the loader's or the driver's own words
}

func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("the %s backend is not available", e.Backend)
	if len(e.Tried) > 0 {
		s += ": looked for " + strings.Join(e.Tried, ", ")
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Is makes errors.Is(err, ErrUnavailable) true.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// OutOfMemoryError says that an allocator had no memory left.
type OutOfMemoryError struct {
	Allocator Allocator
	Device    int
	Size      int    // bytes asked for
	Detail    string // the vendor's name and code, where there is one
	Limited   bool   // by a limit of hamr's own
}

func (e *OutOfMemoryError) Error() string {
	s := fmt.Sprintf("out of memory: %d bytes from allocator %s", e.Size, e.Allocator)
	if e.Device != HostDevice {
		s += fmt.Sprintf(" on device %d", e.Device)
	}
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

// DeviceError is a failure that a vendor's runtime reported.
type DeviceError struct {
	API     string // "cuda"
	Call    string // "cuMemAlloc_v2"
	Name    string // "CUDA_ERROR_INVALID_VALUE"
	Code    int
	Message string // the vendor's description, if it has one
}

func (e *DeviceError) Error() string {
	s := fmt.Sprintf("%s: %s failed with %s (%d)", e.API, e.Call, e.Name, e.Code)
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// NotFreedError is the error of a Free that has freed nothing, since the device could not be reached. The memory is
// there as before, and Free is called again.
type NotFreedError struct{ Reason error }

func (e *NotFreedError) Error() string { return e.Reason.Error() }

// Unwrap returns what went wrong.
func (e *NotFreedError) Unwrap() error { return e.Reason }

// ForkedError says that a runtime was in use before a fork() and does not work
// in the child.
type ForkedError struct {
	Backend string
	Reason  string // the runtime's own words
}

func (e *ForkedError) Error() string {
	return fmt.Sprintf("the %s backend does not work in this child, which was forked after the runtime was first used "+
		"(%s): start processes with multiprocessing's spawn or forkserver method", e.Backend, e.Reason)
}
