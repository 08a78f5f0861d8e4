// Package failures holds the errors that gobuffer and its internal packages return for bad arguments and for
// what was freed. gobuffer exports them: users see only its names.
package failures

import (
	"errors"
	"fmt"
)

// ErrFreed is returned by every use of a buffer after Close, and of a handle after Release.
var ErrFreed = errors.New("the buffer was freed")

// ErrZero is what errors.Is finds where a method was called on nil or on the zero value of its type, as on what a
// constructor returns beside an error. The error is an *ArgumentError that says what makes one.
var ErrZero = errors.New("nil or a zero value")

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

// ArgumentError names an argument, the value it had and what would have been accepted.
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

// Value returns an *ArgumentError for a value that is not accepted.
func Value(argument string, value any, accepted string) error {
	return &ArgumentError{Fault: BadValue, Argument: argument, Value: fmt.Sprint(value), Accepted: accepted}
}

// Index returns an *ArgumentError for an index that is out of range.
func Index(argument string, value any, accepted string) error {
	return &ArgumentError{Fault: BadIndex, Argument: argument, Value: fmt.Sprint(value), Accepted: accepted}
}

// Type returns an *ArgumentError for a value of a type that is not accepted.
func Type(argument string, value any, accepted string) error {
	return &ArgumentError{Fault: BadType, Argument: argument, Value: fmt.Sprint(value), Accepted: accepted}
}

// Zero returns an *ArgumentError for nil or a zero value, which is ErrZero.
func Zero(argument, accepted string) error {
	return &ArgumentError{Argument: argument, Value: ErrZero.Error(), Accepted: accepted, is: ErrZero}
}
