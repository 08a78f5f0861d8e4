package pyhamr

import (
	"errors"

	"hamr/backends"
	"hamr/pyhamr/internal/bridge"
)

// backendReport is what `hamr info` shows of one backend.
type backendReport struct {
	Name       string        `json:"name"`
	Available  bool          `json:"available"`
	Reason     string        `json:"reason,omitempty"`
	Tried      []string      `json:"tried,omitempty"`
	Allocators []string      `json:"allocators"`
	Devices    [][][2]string `json:"devices"` // named facts of each
}

// Backends returns a JSON array of every backend, found or why not.
//
//hamr:blocking
func Backends() (string, error) {
	var reports []backendReport
	_, err := run(func() error {
		for _, b := range bridge.Runtime.Backends() {
			reports = append(reports, report(b))
		}
		return nil
	})
	return encode(reports), err
}

func report(b backends.Backend) backendReport {
	r := backendReport{Name: b.Name(), Allocators: []string{}, Devices: [][][2]string{}}
	for _, a := range backends.Allocators() {
		if a.Backend() == b.Name() {
			r.Allocators = append(r.Allocators, a.String())
		}
	}
	if err := b.Probe(); err != nil {
		r.Reason = err.Error()
		var unavailable *backends.UnavailableError
		if errors.As(err, &unavailable) {
			r.Tried, r.Reason = unavailable.Tried, unavailable.Reason
		}
		return r
	}
	r.Available = true
	count, err := b.DeviceCount()
	if err != nil {
		r.Reason = err.Error()
		return r
	}
	describer, ok := backends.As[backends.Describer](b)
	for i := 0; i < count; i++ {
		facts := [][2]string{}
		if ok {
			known, err := describer.Describe(i)
			facts = append(facts, known...)
			if err != nil {
				facts = append(facts, [2]string{"error", err.Error()})
			}
		}
		r.Devices = append(r.Devices, facts)
	}
	return r
}

// DeviceCount returns how many devices a backend has.
func DeviceCount(backend string) (int, error) {
	count := 0
	_, err := run(func() error {
		b, err := bridge.Runtime.Named(backend)
		if err == nil {
			count, err = b.DeviceCount()
		}
		return err
	})
	return count, err
}

// Statistics returns a JSON array with the counters of each allocator used.
func Statistics() string {
	type row struct {
		Allocator string `json:"allocator"`
		Space     string `json:"space"`
		Live      int64  `json:"live"`
		Current   int64  `json:"current"`
		Peak      int64  `json:"peak"`
		Made      int64  `json:"made"`
		Adopted   int64  `json:"adopted"`
	}
	rows := []row{}
	for _, s := range bridge.Runtime.Statistics() {
		rows = append(rows, row{s.Allocator.String(), s.Allocator.Backend(), s.Live, s.Current, s.Peak, s.Made, s.Adopted})
	}
	return encode(rows)
}

// ResetPeaks makes every peak the present number of bytes.
func ResetPeaks() int {
	bridge.Runtime.ResetPeaks()
	return 0
}

// Trim gives memory back that could not be released yet, and to the system what
// backends keep for reuse.
//
//hamr:blocking
func Trim() (int, error) {
	return run(func() error {
		if err := bridge.Runtime.ReleasePostponed(); err != nil {
			return err
		}
		for _, b := range bridge.Runtime.Backends() {
			if t, ok := backends.As[backends.Trimmer](b); ok && b.Probe() == nil {
				if err := t.Trim(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
