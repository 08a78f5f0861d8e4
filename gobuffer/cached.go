package gobuffer

import (
	"errors"
	"hamr/backends"
)

// Cached makes Access keep the temporaries that it makes, or not, and returns a. While it is on, whoever asks for the
// same space and device again is handed the same memory, for as long as nobody changes the elements through hamr: by
// this Array, by another one, or by another Memory of the same bytes. Who changes them in any other way, by an address
// or a Handle in place, calls Changed. What is handed out is others' as well: it must not be written to, and
// Handle.ReadOnly says so. It is on for this Array alone, not for views and copies of it.
//
// A temporary that is kept is dropped at such a change, by Cached(false), Close and Free, by DropKept, and when memory
// of its runtime runs out; handles hold it for themselves.
func (a *Array) Cached(on bool) error {
	if err := a.check(); err != nil {
		return err
	}
	a.keepTemporaries(on)
	return nil
}

// IsCached reports whether Cached is on.
func (a *Array) IsCached() bool { return a != nil && a.cached }

// Changed says that the elements were written to by somebody whom hamr knows nothing of: of a Cached array of any of
// them, the next Access copies again. What was written on a stream must be ordered as for any Access.
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
	// An access that writes either finds what was begun, or is found.
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

// reuse is a temporary that was kept, of which it takes over a reference, for use on the
// stream that a new one would have. The copy to the host is over: it was waited for.
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
