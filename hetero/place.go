package hetero

import (
	"fmt"
	"strconv"
	"strings"

	"hamr/gobuffer"
)

// Place is a device of a backend.
type Place struct {
	Backend string // "cuda"
	Device  int
}

// String returns the name that ParsePlace reads, as "cuda:1".
func (p Place) String() string { return p.Backend + ":" + strconv.Itoa(p.Device) }

// ParsePlace reads a name such as "cuda:1". Whether there is such a device is not asked. The error is
// a *gobuffer.ArgumentError.
func ParsePlace(name string) (Place, error) {
	backend, number, found := strings.Cut(name, ":")
	device, err := deviceNumber(number)
	if !found || backend == "" || err != nil {
		return Place{}, valueError("place", strconv.Quote(name), `a backend's name and a device's number, as "cuda:1"`)
	}
	return Place{backend, device}, nil
}

// deviceNumber reads decimal digits alone: strconv takes signs, too.
func deviceNumber(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}

func valueError(argument string, value any, accepted string) error {
	return &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: argument, Value: fmt.Sprint(value),
		Accepted: accepted}
}

// zeroValueError is that of a method of nil or of a zero value: a *gobuffer.ArgumentError and
// gobuffer.ErrZero.
type zeroValueError struct{ *gobuffer.ArgumentError }

func (e zeroValueError) Unwrap() []error { return []error{e.ArgumentError, gobuffer.ErrZero} }

func zeroError(argument, accepted string) error {
	return zeroValueError{&gobuffer.ArgumentError{Argument: argument, Value: gobuffer.ErrZero.Error(), Accepted: accepted}}
}
