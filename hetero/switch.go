package hetero

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"hamr/backends"
)

// CPU is the name of what Switch chooses where no device is to be used.
const CPU = "cpu"

// Switch chooses one of several ways to do the same, by names of backends and "cpu", as CMSSW's
// SwitchProducer does: the first in the order of the Runtime's backends of which there is a device
// that may be used, else "cpu"; restrict is as for Scheduler.Accelerators. The error is a
// *gobuffer.ArgumentError for other names, and where none of the cases serves here.
func Switch[T any](s *Scheduler, cases map[string]T, restrict ...string) (name string, chosen T, err error) {
	var none T
	list, err := s.Accelerators(restrict...)
	if err != nil {
		return "", none, err
	}
	names := slices.Sorted(maps.Keys(cases))
	for _, name := range names {
		if !s.caseName(name) {
			return "", none, valueError("case", strconv.Quote(name), `"cpu" and names of backends that have streams, as `+s.names())
		}
	}
	for _, p := range list {
		if chosen, ok := cases[p.Backend]; ok {
			return p.Backend, chosen, nil
		}
	}
	if chosen, ok := cases[CPU]; ok {
		return CPU, chosen, nil
	}
	return "", none, valueError("cases", fmt.Sprintf("%q", names), fmt.Sprintf(`"cpu", or what there is here: %v`, list))
}

// caseName reports whether programs may have a case of that name: also for a runtime that this one
// was built without.
func (s *Scheduler) caseName(name string) bool {
	if name == CPU {
		return true
	}
	known := slices.ContainsFunc(backends.Spaces(), func(space backends.Space) bool {
		return space != backends.SpaceHost && space.String() == name
	})
	return known || slices.ContainsFunc(s.runtime.Backends(), func(b backends.Backend) bool {
		return b.Name() == name && schedulable(b)
	})
}

// FirstAvailable returns the first that is not nil, and whether there is one: what a module that has
// several producers, of which one has run, takes as its input.
func FirstAvailable[T any](products ...*T) (*T, bool) {
	for _, p := range products {
		if p != nil {
			return p, true
		}
	}
	return nil, false
}
