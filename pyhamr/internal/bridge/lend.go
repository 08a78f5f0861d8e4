package bridge

import (
	"errors"
	"fmt"

	"hamr/backends"
	"hamr/gobuffer"
)

// accesses are those that Python has opened and not ended.
var accesses = newNumbered[*gobuffer.Handle](func(number uint64) error {
	return fmt.Errorf("%w: an access ends once (number %#x)", gobuffer.ErrFreed, number)
})

// OpenAccess describes at result where code in a space can use d's elements, which are its
// own until EndAccess of the number that is set; see gobuffer's AccessMode.
func OpenAccess(d *Descriptor, space backends.Space, device int, mode gobuffer.Mode, result *Descriptor,
	access *uint64) (err error) {
	defer Guard(&err)
	slices := false
	if mode != gobuffer.Write {
		if slices, err = d.movementFor(space).long(d); err != nil {
			return err
		}
	}
	if slices {
		device, slices = placeFor(space, device)
	}
	return onIn(slices, d, func(a *gobuffer.Array) error {
		h, err := a.AccessMode(space, device, mode)
		if err != nil {
			return err
		}
		result.describe(h, h.Memory(), d)
		*access = accesses.keep(h)
		return nil
	})
}

// EndAccess ends an access, after what it has written was written back where commit says so.
// streamOver is whether the stream that the elements were used on is no more. d is what
// the access was opened to, and used what OpenAccess has described; they may be nil.
func EndAccess(access uint64, commit, streamOver bool, d, used *Descriptor) (err error) {
	defer Guard(&err)
	end := func(stop *backends.Stop) error { return endAccess(stop, access, commit, streamOver) }
	if !commit || streamOver || !d.prompt() {
		return end(nil)
	}
	m := movement{to: backends.Allocator(d.Allocator), from: backends.Allocator(used.Allocator), bytes: d.bytes(),
		waits: d.waits()}
	slices, err := m.long(d, used)
	if err != nil {
		return errors.Join(err, endAccess(nil, access, false, false))
	}
	if !slices {
		return end(nil)
	}
	return inSlices(end)
}

func endAccess(stop *backends.Stop, access uint64, commit, streamOver bool) (err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	h, err := accesses.take(access)
	if err != nil {
		return err
	}
	if streamOver {
		h.LeaveStream()
	}
	if commit {
		err = h.CommitUntil(stop)
		var full *backends.OutOfMemoryError
		if errors.As(err, &full) {
			accesses.put(access, h)
			return err
		}
	}
	return errors.Join(err, h.Release())
}
