package hetero

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"hamr/backends"
)

// AcceleratorsSetting is the environment variable that restricts which devices are used.
const AcceleratorsSetting = "HAMR_ACCELERATORS"

// restriction says which devices may be used: those of a name, or one of them.
type restriction struct {
	backend string
	device  int // or all
}

const all = -1

// Accelerators returns the devices that may be used, in the order of the Runtime's backends: all of
// those that have streams and whose runtimes are there and serve, without those that are the host
// itself. restrict says which of them may be used, else the environment variable HAMR_ACCELERATORS:
// "cuda" for all devices of a backend, "cuda:1" for one, "cpu" or "none" for none, and any of them
// with commas between. A processor that OpenCL or SYCL serves is one only where it or its backend is
// named. What is named and not there is left out; the error for other names is a
// *gobuffer.ArgumentError.
func (s *Scheduler) Accelerators(restrict ...string) ([]Place, error) {
	if s == nil || s.caches.Load() == nil {
		return nil, zeroError("scheduler", "what New and Default return")
	}
	allowed, restricted, err := s.restrictions(restrict)
	if err != nil {
		return nil, err
	}
	var list []Place
	for _, b := range s.runtime.Backends() {
		devices, err := allowedOf(b, allowed, restricted)
		if err != nil {
			return nil, err
		}
		list = append(list, devices...)
	}
	return list, nil
}

// allowedOf returns the devices of a backend that may be used.
func allowedOf(b backends.Backend, allowed []restriction, restricted bool) (list []Place, err error) {
	mine := slices.DeleteFunc(slices.Clone(allowed), func(r restriction) bool { return r.backend != b.Name() })
	if !schedulable(b) || restricted && len(mine) == 0 || b.Probe() != nil {
		return nil, nil
	}
	count, err := b.DeviceCount()
	if err != nil {
		return nil, err
	}
	for device := range count {
		named := slices.ContainsFunc(mine, func(r restriction) bool { return r.device == all || r.device == device })
		if (named || !restricted && !onProcessor(b, device)) && !onHost(b, device) {
			list = append(list, Place{b.Name(), device})
		}
	}
	return list, nil
}

func onHost(b backends.Backend, device int) bool {
	hosts, ok := backends.As[backends.HostDevices](b)
	return ok && hosts.OnHost(device)
}

func onProcessor(b backends.Backend, device int) bool {
	processors, ok := backends.As[backends.ProcessorDevices](b)
	return ok && processors.OnProcessor(device)
}

// schedulable reports whether a backend has streams.
func schedulable(b backends.Backend) bool {
	_, ok := backends.As[backends.Streams](b)
	return ok
}

// names lists the backends that have streams.
func (s *Scheduler) names() string {
	var names []string
	for _, b := range s.runtime.Backends() {
		if schedulable(b) {
			names = append(names, b.Name())
		}
	}
	return strings.Join(names, ", ")
}

// restrictions reads what is given, or else the environment.
func (s *Scheduler) restrictions(given []string) (allowed []restriction, restricted bool, err error) {
	argument := "restrict"
	if len(given) == 0 {
		text := os.Getenv(AcceleratorsSetting)
		if text == "" {
			return nil, false, nil
		}
		argument, given = AcceleratorsSetting, []string{text}
	}
	for _, text := range given {
		for name := range strings.SplitSeq(text, ",") {
			name = strings.TrimSpace(name)
			if name == "cpu" || name == "none" {
				continue
			}
			r, err := s.restriction(name)
			if err != nil {
				return nil, false, valueError(argument, strconv.Quote(text),
					`"cpu", "none", and, with or without a device's number, as in "cuda:1": `+s.names())
			}
			allowed = append(allowed, r)
		}
	}
	return allowed, true, nil
}

var errName = errors.New("no such name")

func (s *Scheduler) restriction(name string) (r restriction, err error) {
	backend, number, one := strings.Cut(name, ":")
	r = restriction{backend, all}
	if one {
		if r.device, err = deviceNumber(number); err != nil {
			return r, err
		}
	}
	for _, b := range s.runtime.Backends() {
		if b.Name() == backend && schedulable(b) {
			return r, nil
		}
	}
	return r, errName
}
