package backends

import (
	"errors"
	"sync/atomic"
)

// ErrStopped is the error of an operation that was stopped.
var ErrStopped = errors.New("stopped before its end")

// Stop asks an operation to end before its time. Any goroutine may ask at any time; nil never asks.
type Stop struct{ asked atomic.Bool }

// Ask makes the operation end soon. It returns at once.
func (s *Stop) Ask() { s.asked.Store(true) }

// Asked reports whether somebody has.
func (s *Stop) Asked() bool { return s != nil && s.asked.Load() }
