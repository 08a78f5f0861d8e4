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

// Fault says which of Python's argument errors a bad argument is.
type Fault uint8

// The faults.
const (
	BadValue Fault = iota // ValueError
	BadType               // TypeError
	BadIndex              // IndexError
)

// ArgumentError names an argument, the value it had and what would have been
// accepted.
type ArgumentError struct {
	Fault    Fault
	Argument string
	Value    string
	Accepted string
}

func (e *ArgumentError) Error() string {
	s := fmt.Sprintf("%s is %s", e.Argument, e.Value)
	if e.Accepted != "" {
		s += ": accepted is " + e.Accepted
	}
	return s
}

func valueError(argument string, value any, accepted string) error {
	return &ArgumentError{BadValue, argument, fmt.Sprint(value), accepted}
}

func indexError(argument string, value any, accepted string) error {
	return &ArgumentError{BadIndex, argument, fmt.Sprint(value), accepted}
}

func typeError(argument string, value any, accepted string) error {
	return &ArgumentError{BadType, argument, fmt.Sprint(value), accepted}
}

func allocatorNames() string {
	var names []string
	for _, a := range backends.Allocators() {
		names = append(names, a.String())
	}
	return strings.Join(names, ", ")
}
