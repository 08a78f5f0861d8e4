package gobuffer

import (
	"errors"
	"hamr/backends"
)

// Cached makes Access keep the temporaries that it makes, or not. While it is on, later Accesses from the same space
// and device get the same memory, until somebody changes the elements through hamr: by this Array, by another one, or
// by another Memory of the same bytes. Who changes them in any other way, by an address or a Handle in place, calls
// Changed. Others may use such a temporary, too: it must not be written to, and Handle.ReadOnly says so. Cached applies
// to this Array alone, not to its views and copies.
//
// A kept temporary is dropped at a change of the elements, by Cached(false), Close, Free and DropKept, and when memory
// of its runtime runs out. Handles keep it alive for themselves.
func (a *Array) Cached(on bool) error {
	if err := a.check(); err != nil {
		return err
	}
	a.keepTemporaries(on)
	return nil
}

// IsCached reports whether Cached is on.
func (a *Array) IsCached() bool { return a != nil && a.cached }

// Changed says that the elements were written to without hamr. The next Access of a Cached array of any of them copies
// again. A write on a stream must be ordered as for any Access.
func (a *Array) Changed() error {
	if err := a.check(); err != nil {
		return err
	}
	a.runtime.kept.changed(a.all())
	return nil
}

// keptTemporary is temporary for a Cached array; shared is whether it is kept.
func (a *Array) keptTemporary(s backends.Space, device int) (copied *Array, shared bool, err error) {
	k := &a.runtime.kept
	if s == backends.SpaceHost {
		device = backends.HostDevice
	}
	if made := k.find(a.all(), s, device); made.memory != nil {
		copied, err = a.reuse(made)
		return copied, err == nil, err
	}
	if a.memory == nil || a.memory.Mapped() || a.layout.Count() == 0 {
		copied, err = a.temporary(s, device, true)
		return copied, false, err
	}
	begun := k.begin(a.all(), s, device)
	// An access that writes either sees what begin has listed, or is seen here.
	//mutate:never a temporary is kept while an access writes
	if a.runtime.claims.writes(a.all()) {
		k.end(begun)
	}
	if copied, err = a.temporary(s, device, true); err != nil {
		k.end(begun)
		return nil, false, err
	}
	return copied, k.finish(begun, copied.all()), nil
}

// reuse makes an Array of a kept temporary, whose reference it takes over, for the stream that a new temporary would
// have. The copy to the host is complete: it was waited for.
func (a *Array) reuse(made piece) (*Array, error) {
	r := made.memory.region
	o, err := a.optionsAt(r.Allocator, r.Device)
	if err == nil && o.Stream != 0 {
		o.Stream, err = made.memory.resolved(o.Stream)
	}
	if err != nil {
		return nil, errors.Join(err, made.memory.Release())
	}
	a.runtime.kept.reused[r.Allocator].Add(1)
	return View(made.memory, made.address, made.layout, made.layout.Count(), true, o), nil
}
