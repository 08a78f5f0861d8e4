package bridge

import (
	"errors"
	"slices"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// BackendReport is what is known of a backend, whether it is available or not.
type BackendReport struct {
	Name       string
	Available  bool
	Reason     string   // why it is not
	Tried      []string // what was looked for then
	Allocators []string
	Devices    int
}

// Backends lists the names of all backends.
func Backends() (names []string, err error) {
	defer Guard(&err)
	for _, b := range Runtime.Backends() {
		names = append(names, b.Name())
	}
	return names, nil
}

// Report probes a backend.
func Report(name string) (r BackendReport, err error) {
	defer Guard(&err)
	r.Name = name
	for _, a := range backends.Allocators() {
		if a.Backend() == name {
			r.Allocators = append(r.Allocators, a.String())
		}
	}
	b, err := Runtime.Named(name)
	if err != nil {
		var unavailable *backends.UnavailableError
		if errors.As(err, &unavailable) {
			r.Tried, r.Reason = unavailable.Tried, unavailable.Reason
			return r, nil
		}
		if b == nil {
			return r, err
		}
		r.Reason = err.Error()
		return r, nil
	}
	r.Available = true
	if r.Devices, err = b.DeviceCount(); err != nil {
		r.Reason = err.Error()
	}
	return r, nil
}

// Statistics returns the counters of each allocator used.
func Statistics() []gobuffer.Statistics {
	reused, untold := DropSpares()
	list := Runtime.Statistics()
	if i := slices.IndexFunc(list, func(s gobuffer.Statistics) bool { return s.Allocator == backends.CUDA }); i >= 0 {
		list[i].Made += GrantedAgain()
	}
	i := slices.IndexFunc(list, func(s gobuffer.Statistics) bool { return s.Allocator >= backends.Malloc })
	if i < 0 {
		i = len(list)
	}
	if i == len(list) || list[i].Allocator != backends.Malloc {
		if untold == 0 {
			return list
		}
		list = slices.Insert(list, i, gobuffer.Statistics{Allocator: backends.Malloc})
	}
	list[i].Made += reused
	list[i].Adopted += untold
	return list
}

// DropSpares gives back the small memory that C keeps for reuse, which the core counts as in use, and
// returns how many allocations it has stood in for since the start, and of how much foreign memory in
// use the core has not been told yet. Package capi sets it.
var DropSpares = func() (reused, untold int64) { return 0, 0 }

// ResetPeaks makes every peak the present number of bytes.
func ResetPeaks() {
	DropSpares()
	Runtime.ResetPeaks()
}

// Pools describes each pool of memory that is kept for reuse: allocator, device, limit or -1, the bytes in use, taken
// at most, kept and side by side, hits and misses.
func Pools() (rows Rows, err error) {
	defer Guard(&err)
	for _, p := range Runtime.Pools() {
		rows = append(rows, []any{p.Allocator, p.Device, p.Limit, p.Current, p.Peak, p.Cached, p.LargestFree, p.Hits,
			p.Misses})
	}
	return rows, nil
}

// LimitKept limits how much freed memory of the host is kept.
func LimitKept(bytes int64) (err error) {
	defer Guard(&err)
	return Runtime.LimitKept(bytes)
}

// LimitPool limits what is taken for an allocator on a device.
func LimitPool(a backends.Allocator, device int, bytes int64) (err error) {
	defer Guard(&err)
	return Runtime.LimitPool(a, device, bytes)
}

// Trim gives back temporaries that cached buffers keep, memory that could not be released yet and what
// scheduling keeps of memory, streams and events, and to the system what backends keep for reuse.
func Trim() (err error) {
	defer Guard(&err)
	DropSpares()
	Runtime.SettleGrants()
	Runtime.DropKept()
	if err := Runtime.ReleasePostponed(); err != nil {
		return err
	}
	if err := errors.Join(Scheduler.TrimAllocators(), Scheduler.Trim()); err != nil {
		return err
	}
	lookAtFreed()
	for _, b := range Runtime.Backends() {
		if t, ok := backends.As[backends.Trimmer](b); ok && b.Probe() == nil {
			if err := t.Trim(); err != nil {
				return err
			}
		}
	}
	return nil
}

// PreferredAllocator returns the best allocator on this machine for the host, or else for devices.
func PreferredAllocator(forHost bool) (a backends.Allocator, err error) {
	defer Guard(&err)
	if forHost {
		return Runtime.HostAllocator(), nil
	}
	return Runtime.DeviceAllocator(), nil
}

// ParseElement returns the element type with a NumPy name, typestr or short code.
func ParseElement(name string) (t arrayiface.ElementType, err error) {
	defer Guard(&err)
	return arrayiface.ParseName(name)
}

// CheckInterface applies the rules of the array interface to fields whose Python types are
// right, and returns the element type. It keeps nothing of them.
func CheckInterface(f arrayiface.Fields) (t arrayiface.ElementType, err error) {
	defer Guard(&err)
	parsed, err := arrayiface.ParseFields(f)
	return parsed.Layout.Type, err
}

// LiveReferences returns how many references Python holds.
func LiveReferences() int {
	_, untold := DropSpares()
	tokens.mutex.Lock()
	defer tokens.mutex.Unlock()
	return len(tokens.slots) - len(tokens.free) + int(untold)
}
