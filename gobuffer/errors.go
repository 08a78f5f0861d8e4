package gobuffer

import (
	"errors"
	"fmt"
	"strings"

	"hamr/backends"
)

// ErrFreed is returned by every use of a buffer after Close, and of a handle
// after Release.
var ErrFreed = errors.New("the buffer was freed")

// ErrZero is what errors.Is finds where a method was called on nil or on the zero value of
// its type, as on what a constructor returns beside an error. The error is an *ArgumentError
// that says what makes one.
var ErrZero = errors.New("nil or a zero value")

// ErrNoBackends is returned by what uses the process's own backends while there are none.
var ErrNoBackends = errors.New("no backends: call gobuffer.Use(all.New()...) first")

var (
	errClosed   = fmt.Errorf("%w by Close; Free leaves one that can grow again", ErrFreed)
	errReleased = fmt.Errorf("%w: the handle was released; ask a buffer for another", ErrFreed)

	errModuleClosed = fmt.Errorf("%w: the module of kernels was closed", ErrFreed)

	errNoArray   = zeroError("buffer", "what New, From, Adopt, View and Runtime.NewArray return")
	errNoHandle  = zeroError("handle", "what Access, AccessMode and HostAccessible return")
	errNoKernel  = zeroError("kernel", "what Module.Kernel returns")
	errNoMemory  = zeroError("memory", "what Runtime.Allocate, Adopt and TakeOver return")
	errNoModule  = zeroError("module", "what Runtime.NewModule returns")
	errNoRuntime = zeroError("runtime", "what Default and NewRuntime return")
)

func zeroError(argument, accepted string) error {
	return &ArgumentError{Argument: argument, Value: ErrZero.Error(), Accepted: accepted, is: ErrZero}
}

// Fault says which of Python's argument errors a bad argument is.
type Fault uint8

// The faults.
const (
	BadValue Fault = iota // ValueError
	BadType               // TypeError
	BadIndex              // IndexError
)

// String returns the name of Python's error.
func (f Fault) String() string {
	switch f {
	case BadValue:
		return "ValueError"
	case BadType:
		return "TypeError"
	case BadIndex:
		return "IndexError"
	}
	return fmt.Sprintf("Fault(%d)", uint8(f))
}

// ArgumentError names an argument, the value it had and what would have been
// accepted.
type ArgumentError struct {
	Fault    Fault
	Argument string
	Value    string
	Accepted string
	is       error
}

// Unwrap returns ErrZero where the argument is nil or a zero value, else nil.
func (e *ArgumentError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.is
}

// Error names the argument, its value and what is accepted.
func (e *ArgumentError) Error() string {
	if e == nil {
		return "<nil>"
	}
	s := fmt.Sprintf("%s is %s", e.Argument, e.Value)
	if e.Accepted != "" {
		s += ": accepted is " + e.Accepted
	}
	return s
}

func valueError(argument string, value any, accepted string) error {
	return &ArgumentError{Fault: BadValue, Argument: argument, Value: fmt.Sprint(value), Accepted: accepted}
}

func indexError(argument string, value any, accepted string) error {
	return &ArgumentError{Fault: BadIndex, Argument: argument, Value: fmt.Sprint(value), Accepted: accepted}
}

func typeError(argument string, value any, accepted string) error {
	return &ArgumentError{Fault: BadType, Argument: argument, Value: fmt.Sprint(value), Accepted: accepted}
}

func allocatorNames() string {
	var names []string
	for _, a := range backends.Allocators() {
		names = append(names, a.String())
	}
	return strings.Join(names, ", ")
}
