package gobuffer

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"hamr/backends"
)

// Tag returns what stands for a name in Options.Tag. Memory that is made with it is paused and resumed by the name.
func (r *Runtime) Tag(name string) (backends.Tag, error) {
	if err := r.check(); err != nil {
		return backends.NoTag, err
	}
	if name == "" {
		return backends.NoTag, valueError("tag", `""`, "a name")
	}
	p, t := &r.pauses, backends.TagOf(name)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !slices.Contains(p.known, t) {
		p.known = append(p.known, t)
		p.ever.Add(1)
	}
	return t, nil
}

// tagNamed returns a Tag that exists.
func (r *Runtime) tagNamed(name string) (backends.Tag, error) {
	if err := r.check(); err != nil {
		return backends.NoTag, err
	}
	p := &r.pauses
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var names []string
	for _, t := range p.known {
		if t.String() == name {
			return t, nil
		}
		names = append(names, fmt.Sprintf("%q", t))
	}
	accepted := "a name that memory was made pausable by, of which there is none"
	if len(names) > 0 {
		slices.Sort(names)
		accepted = strings.Join(names, ", ")
	}
	return backends.NoTag, valueError("tag", fmt.Sprintf("%q", name), accepted)
}

// PausableWord is the address of a 64-bit number. It is zero while no memory can be paused. It exists as long as the
// Runtime.
func (r *Runtime) PausableWord() uintptr {
	if r.check() != nil {
		return 0
	}
	return uintptr(unsafe.Pointer(&r.pauses.ever))
}

// Pause gives the devices' memory of a tag back and keeps its addresses. It waits for all work on these devices, other
// libraries' included. Until Resume, whatever would use the memory fails with a *backends.PausedError; memory may be
// freed. folder is where KeepDisk makes its file, or "". After an error all is as before. Memory that is paused in the
// same way stays as it is.
func (r *Runtime) Pause(name string, keep backends.Keep, folder string) error {
	t, err := r.tagNamed(name)
	if err != nil {
		return err
	}
	if c := r.checked(); c != nil {
		c.giveBack(true) // or contents that are kept would be taken for a use of freed memory
		if keep == backends.KeepNothing {
			keep = backends.KeepHost // or what it has written around elements would be taken for overwritten
		}
	}
	defer r.countAway(t)
	for _, b := range r.pausers() {
		if err := b.Pause(t, keep, folder); err != nil {
			return err
		}
	}
	if r.tracing() {
		r.tracef("pause %q, keep %s", t, keep)
	}
	return nil
}

// Resume takes memory for a tag again, at the same addresses, with the contents that Pause kept. If memory ran out, or
// a limit of LimitLibrary leaves none, the error is a *backends.OutOfMemoryError. After an error all is paused as
// before. Memory that is not paused stays as it is.
func (r *Runtime) Resume(name string) error {
	t, err := r.tagNamed(name)
	if err != nil {
		return err
	}
	defer r.countAway(t)
	for _, b := range r.pausers() {
		if !b.IsPaused(t) {
			continue
		}
		// Callbacks run without locks: they may pause memory of other tags.
		before := r.givenBack()
		err := r.resume(b, t)
		if err != nil {
			backend, _ := b.(backends.Backend)
			err = r.takeAgain(before, backend, err, func() error { return r.resume(b, t) })
		}
		if err != nil {
			return err
		}
	}
	if r.tracing() {
		r.tracef("resume %q", t)
	}
	return nil
}

func (r *Runtime) resume(b backends.Pauser, t backends.Tag) error {
	if err := r.books.allow(r, t); err != nil {
		return err
	}
	defer r.books.returned(t)
	return b.Resume(t)
}

// pausers are the backends that are in use and have memory that can be paused.
func (r *Runtime) pausers() (list []backends.Pauser) {
	for _, b := range r.Backends() {
		if p, able := backends.As[backends.Pauser](b); able && b.Probe() == nil {
			list = append(list, p)
		}
	}
	return list
}

// Pausable lists the memory that can be paused, by tag and device.
func (r *Runtime) Pausable() (list []backends.Paused) {
	if r.check() != nil || r.pauses.ever.Load() == 0 {
		return nil
	}
	for _, p := range r.pausers() {
		list = append(list, p.Paused()...)
	}
	return list
}
