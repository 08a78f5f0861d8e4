package gobuffer

import (
	"errors"
	"fmt"

	"hamr/gobuffer/internal/failures"
)

var (
	// ErrFreed is returned by every use of a buffer after Close, and of a handle after Release.
	ErrFreed = failures.ErrFreed

	// ErrZero is what errors.Is finds where a method was called on nil or on the zero value of its type, as on what a
	// constructor returns beside an error. The error is an *ArgumentError that says what makes one.
	ErrZero = failures.ErrZero
)

// ErrNoBackends is returned by what uses the process's own backends while there are none.
var ErrNoBackends = errors.New("no backends: call gobuffer.Use(all.New()...) first")

var (
	errClosed   = fmt.Errorf("%w by Close; Free leaves one that can grow again", ErrFreed)
	errReadOnly = valueError("buffer", "read-only", "a writable buffer; copy() makes one")
	errReleased = fmt.Errorf("%w: the handle was released; ask a buffer for another", ErrFreed)

	errModuleClosed = fmt.Errorf("%w: the module of kernels was closed", ErrFreed)

	errNoArray   = zeroError("buffer", "what New, From, Adopt, View and Runtime.NewArray return")
	errNoHandle  = zeroError("handle", "what Access, AccessMode and HostAccessible return")
	errNoKernel  = zeroError("kernel", "what Module.Kernel returns")
	errNoMemory  = zeroError("memory", "what Runtime.Allocate, Adopt and TakeOver return")
	errNoModule  = zeroError("module", "what Runtime.NewModule returns")
	errNoRuntime = zeroError("runtime", "what Default and NewRuntime return")
)

// Fault says which of Python's argument errors a bad argument is.
type Fault = failures.Fault

// The faults.
const (
	BadValue = failures.BadValue // ValueError
	BadType  = failures.BadType  // TypeError
	BadIndex = failures.BadIndex // IndexError
)

// ArgumentError names an argument, the value it had and what would have been accepted.
type ArgumentError = failures.ArgumentError

func zeroError(argument, accepted string) error { return failures.Zero(argument, accepted) }

func valueError(argument string, value any, accepted string) error {
	return failures.Value(argument, value, accepted)
}

func indexError(argument string, value any, accepted string) error {
	return failures.Index(argument, value, accepted)
}

func typeError(argument string, value any, accepted string) error {
	return failures.Type(argument, value, accepted)
}
