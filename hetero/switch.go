package hetero

import (
	"cmp"
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
// that may be used, else "cpu"; restrict is as for Scheduler.Accelerators. Of backends without a case
// nothing is loaded. The error is a *gobuffer.ArgumentError for other names, and where none of the
// cases serves here.
func Switch[T any](s *Scheduler, cases map[string]T, restrict ...string) (name string, chosen T, err error) {
	name, err = s.choose(slices.Sorted(maps.Keys(cases)), restrict)
	return name, cases[name], err
}

func (s *Scheduler) choose(cases, restrict []string) (string, error) {
	list := s.Runtime().Backends()
	slices.SortStableFunc(cases, func(a, b string) int { return cmp.Compare(indexOf(list, a), indexOf(list, b)) })
	name, err := s.FirstOf(cases, restrict...)
	if err != nil || name != "" {
		return name, err
	}
	return "", valueError("cases", fmt.Sprintf("%q", cases),
		`"cpu", or a backend of which there is a device that may be used`)
}

func indexOf(list []backends.Backend, name string) int {
	return slices.IndexFunc(list, func(b backends.Backend) bool { return b.Name() == name })
}

// FirstOf returns the first of some names of backends, as they are given, of which there is a device
// that may be used, else "cpu" if that is one of the names, else "". Of backends that are not named, and
// behind the first, nothing is loaded, nor of those that restrict leaves out; it is as for
// Scheduler.Accelerators. The error is a *gobuffer.ArgumentError for other names.
func (s *Scheduler) FirstOf(cases []string, restrict ...string) (string, error) {
	if s == nil || s.caches.Load() == nil {
		return "", zeroError("scheduler", "what New and Default return")
	}
	allowed, restricted, err := s.restrictions(restrict)
	if err != nil {
		return "", err
	}
	for _, name := range cases {
		if !s.caseName(name) {
			return "", valueError("case", strconv.Quote(name), `"cpu" and names of backends that have streams, as `+s.names())
		}
	}
	list := s.runtime.Backends()
	for _, name := range cases {
		i := indexOf(list, name)
		if i < 0 {
			continue // "cpu", or this program was built without it
		}
		devices, err := allowedOf(list[i], allowed, restricted)
		if err != nil {
			return "", err
		}
		if len(devices) > 0 {
			return name, nil
		}
	}
	if slices.Contains(cases, CPU) {
		return CPU, nil
	}
	return "", nil
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
