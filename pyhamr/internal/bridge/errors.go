package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// Prefix starts every error text that crosses into Python, so that hamr can tell
// its own errors from those of the generated glue.
const Prefix = "hamr\x1f"

// Text returns err as Prefix, the name of the Python exception, its attributes
// as JSON, and the message, separated by unit separators.
func Text(err error) string {
	kind, attributes := classify(err)
	encoded, _ := json.Marshal(attributes)
	return Prefix + kind + "\x1f" + string(encoded) + "\x1f" + err.Error()
}

func classify(err error) (kind string, attributes map[string]any) {
	attributes = map[string]any{}
	var (
		unavailable *backends.UnavailableError
		forked      *backends.ForkedError
		memory      *backends.OutOfMemoryError
		device      *backends.DeviceError
		argument    *gobuffer.ArgumentError
		element     *arrayiface.Error
		typed       interface{ IsTypeError() bool }
		crash       *PanicError
	)
	switch {
	case errors.As(err, &unavailable):
		attributes["backend"], attributes["tried"] = unavailable.Backend, unavailable.Tried
		return "BackendUnavailable", attributes
	case errors.As(err, &forked):
		return "ForkError", attributes
	case errors.As(err, &memory):
		attributes["size"] = memory.Size
		return "OutOfMemory", attributes
	case errors.As(err, &device):
		attributes["api"], attributes["name"], attributes["code"] = device.API, device.Name, device.Code
		return "DeviceError", attributes
	case errors.Is(err, gobuffer.ErrFreed):
		return "FreedBuffer", attributes
	case errors.As(err, &argument):
		return [...]string{"ValueError", "TypeError", "IndexError"}[argument.Fault], attributes
	case errors.As(err, &element):
		switch {
		case element.Type:
			return "TypeError", attributes
		case element.Key == "index":
			return "IndexError", attributes
		}
		return "ValueError", attributes
	case errors.As(err, &typed) && typed.IsTypeError():
		return "TypeError", attributes
	case errors.As(err, &crash):
		attributes["stack"] = crash.Stack
		return "InternalError", attributes
	}
	return "ValueError", attributes
}

// PanicError is a bug in hamr that would have ended the interpreter.
type PanicError struct {
	Value any
	Stack string
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("internal error in hamr, please report it: %v", e.Value)
}

// Guard turns a panic into *err. It is deferred by everything that Python calls,
// since a panic that leaves Go aborts the interpreter.
func Guard(err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Value: p, Stack: string(debug.Stack())}
	}
}
