package bridge

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store"
)

// Kind is which Python exception an error becomes: hamr_error_kind of hamr/functions.h.
type Kind int32

// The kinds of error.
const (
	ValueError Kind = iota + 1
	TypeError
	IndexError
	OutOfMemory
	Unavailable
	DeviceError
	Freed
	Forked
	InternalError
	InUse
	OutOfRange
	Paused
	_    // HAMR_ERROR_KIND_COUNT
	Busy // no error: an operation goes on. Size is its number
)

// Failure is an error in the parts that other languages make theirs of. What a kind does not have is zero.
type Failure struct {
	Kind    Kind
	Message string
	Source  string   // the backend that is not available, the vendor's interface, or the allocator that has no more
	Name    string   // of the vendor's code; "limit" where one of hamr's own leaves no more memory
	Code    int      // the vendor's, or the device that is full
	Size    int      // bytes that there were no more of
	Tried   []string // the libraries that were looked for
	Stack   string

	// Of a store that is full.
	Limit, Used int64
	Holders     []store.Holder
}

// Classify takes an error apart.
func Classify(err error) Failure {
	var (
		unavailable *backends.UnavailableError
		forked      *backends.ForkedError
		memory      *backends.OutOfMemoryError
		device      *backends.DeviceError
		paused      *backends.PausedError
		kept        *backends.NotKeptError
		argument    *gobuffer.ArgumentError
		element     *arrayiface.Error
		number      interface{ IsTypeError() bool }
		crash       *PanicError
		busy        *BusyError
	)
	f := Failure{Kind: ValueError, Message: err.Error()}
	switch {
	case errors.As(err, &busy):
		f.Kind, f.Size = Busy, int(busy.Operation)
	case errors.As(err, &unavailable):
		f.Kind, f.Source, f.Tried = Unavailable, unavailable.Backend, unavailable.Tried
		f.Message += "; hamr info shows what this machine has"
	case errors.As(err, &forked):
		f.Kind = Forked
	case errors.As(err, &memory):
		f.Kind, f.Size, f.Code, f.Source = OutOfMemory, memory.Size, memory.Device, memory.Allocator.String()
		if memory.Limited {
			f.Name = "limit"
		}
	case errors.As(err, &device):
		f.Kind, f.Source, f.Name, f.Code = DeviceError, device.API, device.Name, device.Code
	case errors.Is(err, gobuffer.ErrFreed):
		f.Kind = Freed
	case errors.Is(err, gobuffer.ErrInUse):
		f.Kind = InUse
	case errors.As(err, &kept) && errors.Is(err, syscall.ENOSPC):
		f.Kind, f.Size, f.Code, f.Source = OutOfMemory, int(kept.Size), backends.HostDevice, "disk"
	case errors.As(err, &paused):
		f.Kind, f.Name = Paused, paused.Tag.String()
	case errors.As(err, &argument):
		f.Kind = [...]Kind{ValueError, TypeError, IndexError}[argument.Fault]
	case errors.As(err, &element):
		switch {
		case element.Type:
			f.Kind = TypeError
		case element.Key == "index":
			f.Kind = IndexError
		}
	case errors.As(err, &number):
		f.Kind = OutOfRange
		if number.IsTypeError() {
			f.Kind = TypeError
		}
	case errors.As(err, &crash):
		f.Kind, f.Stack = InternalError, crash.Stack
	default:
		f.classifyStore(err)
	}
	return f
}

// BusyError says that an operation goes on: Proceed or Stop tells its outcome.
type BusyError struct{ Operation uint64 }

func (e *BusyError) Error() string { return fmt.Sprintf("operation %#x goes on", e.Operation) }

// PanicError is a bug in hamr that would have ended the interpreter.
type PanicError struct {
	Value any
	Stack string
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("internal error in hamr, please report it: %v", e.Value)
}

// errTrap is the caller's: Go masks these exceptions, and so does C unless it is told otherwise.
var errTrap = errors.New("the elements raise a floating-point exception, and floating-point exceptions " +
	"trap in this thread (feenableexcept, gfortran's -ffpe-trap): accepted are elements that raise none, " +
	"or exceptions masked during the call (fedisableexcept)")

// Guard turns a panic into *err. It is deferred by everything that Python calls,
// since a panic that leaves Go aborts the interpreter.
func Guard(err *error) {
	if p := recover(); p != nil {
		*err = errorOf(p)
	}
}

func errorOf(panicked any) error {
	if e, ok := panicked.(runtime.Error); ok && strings.HasSuffix(e.Error(), "floating point error") {
		return errTrap
	}
	return &PanicError{Value: panicked, Stack: string(debug.Stack())}
}
