package bridge

import (
	"errors"
	"fmt"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
)

// AdoptDevice is Adopt for memory that a device's runtime knows, which is asked where it is and how far it reaches;
// d.Allocator None takes what the runtime says. What hamr does with the memory runs after what the stream producer
// holds now; zero is no stream.
func AdoptDevice(d *Descriptor, released func(), producer backends.Stream) (err error) {
	defer Guard(&err)
	if err := d.locate(); err != nil {
		return err
	}
	if d.Base == 0 && d.Allocator == int32(backends.None) {
		d.Allocator = int32(backends.CUDA)
	}
	if d.Base != 0 {
		if err := d.checkLocation(released == nil); err != nil {
			return err
		}
	}
	m, err := d.adopt(released)
	if err != nil {
		return err
	}
	if producer != 0 && d.Base != 0 {
		if err := m.After(backends.Stream(d.Stream), producer); err != nil {
			m.Disown() // the caller keeps the memory's owner
			return err
		}
	}
	d.Memory = tokens.put(m)
	return nil
}

// locateAs asks the runtime that serves an allocator where an address is, unless that is None, and then
// all of them: more than one may know the memory. told is false if that runtime cannot tell.
func locateAs(a backends.Allocator, at backends.Address) (found backends.Location, told bool, err error) {
	if a != backends.None {
		b, err := Runtime.Backend(a)
		if err != nil {
			return found, false, err
		}
		locator, tells := backends.As[backends.Locator](b)
		if !tells {
			return found, false, nil
		}
		if found, err = locator.Locate(at); err != nil || found.Allocator != backends.None {
			return found, true, err
		}
	}
	found, err = Runtime.Locate(at)
	return found, true, err
}

// checkLocation compares d with what the runtime says of its memory. Memory that is
// taken must be what its allocator can free.
func (d *Descriptor) checkLocation(taken bool) error {
	found, told, err := locateAs(backends.Allocator(d.Allocator), backends.Address(d.Pointer))
	if err != nil {
		return err
	}
	if !told {
		return nil // the caller is believed
	}
	if found.Allocator == backends.None {
		return refused("data", fmt.Sprintf("%#x", d.Pointer),
			"device memory that exists: no runtime on this machine knows this address")
	}
	if err := Runtime.SettleContext(found); err != nil {
		return err
	}
	if end := uint64(found.Base) + uint64(found.Size); found.Size > 0 &&
		(d.Base < uint64(found.Base) || d.Base+d.Size > end) {
		return refused("data", fmt.Sprintf("%#x, and the elements reach from %#x to %#x", d.Pointer, d.Base, d.Base+d.Size),
			fmt.Sprintf("elements inside the allocation, which reaches from %#x to %#x", found.Base, end))
	}
	if taken && found.Base != 0 && d.Base != uint64(found.Base) {
		return refused("data", fmt.Sprintf("%#x", d.Base),
			fmt.Sprintf("%#x, where the allocation starts, with take", found.Base))
	}
	switch given := backends.Allocator(d.Allocator); {
	case given == backends.None,
		// Nor can DLPack tell them apart.
		!taken && given.Backend() == found.Allocator.Backend() && given.Kind() != found.Allocator.Kind() &&
			given.Facts().DLPack == found.Allocator.Facts().DLPack:
		d.Allocator = int32(found.Allocator)
	case given.Backend() != found.Allocator.Backend(), given.Kind() != found.Allocator.Kind(),
		taken && given != found.Allocator:
		return refused("allocator", given.String(),
			fmt.Sprintf("%s: that is what the memory at %#x is", found.Allocator, d.Pointer))
	}
	if d.Device >= 0 && int(d.Device) != found.Device && found.Device != backends.HostDevice {
		return refused("device", fmt.Sprint(d.Device),
			fmt.Sprintf("%d: that is where the memory at %#x is", found.Device, d.Pointer))
	}
	d.Device = int32(found.Device)
	return nil
}

func refused(argument, value, accepted string) error {
	return &gobuffer.ArgumentError{Fault: gobuffer.BadValue, Argument: argument, Value: value, Accepted: accepted}
}

// Reaches reports whether code in a space, on some device of its runtime's, can use memory at an address in place.
func Reaches(allocator, device int, address uint64, space int) (is bool, err error) {
	defer Guard(&err)
	at := backends.Region{Address: backends.Address(address), Allocator: backends.Allocator(allocator), Device: device}
	return Runtime.Reaches(at, backends.Space(space))
}

// Access describes at result where code in a space can touch d's elements.
func Access(d *Descriptor, space backends.Space, device int, result *Descriptor) (err error) {
	defer Guard(&err)
	slices, err := d.movementFor(space).long(d)
	if err != nil {
		return err
	}
	if slices {
		device, slices = placeFor(space, device)
	}
	return onIn(slices, d, func(a *gobuffer.Array) error {
		h, err := a.Access(space, device)
		if err != nil {
			return err
		}
		return result.StoreHandle(h, d)
	})
}

// Changed says that d's elements were written to by others, see gobuffer's Cached.
func Changed(d *Descriptor) error {
	return on(d, func(a *gobuffer.Array) error { return a.Changed() })
}

// plain reports whether d's elements lie in C order in memory that the host does not reach.
func (d *Descriptor) plain() bool {
	return d.Memory != 0 && d.Size > 0 && d.Flags&(1<<reachableShift) == 0 && d.bytesInOrder() > 0
}

// bytesInOrder is how many bytes elements have that lie in C order; 0 if they do not.
func (d *Descriptor) bytesInOrder() int {
	shape, strides := d.borrowedShape(), d.borrowedStrides()
	step := arrayiface.ElementType(d.Element).Size()
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && strides[i] != step {
			return 0
		}
		step *= shape[i]
	}
	return step
}

// Read copies d's elements to ordinary host memory at target, which has room for
// size bytes and C order, and returns when they are there. It reports false, and
// has done nothing, if the elements do not lie so or are no device's. With a *BusyError it is true.
func Read(d *Descriptor, target uint64, size int) (done bool, err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	// While tracing the general way has more to say, of what it copies and of temporaries.
	if !d.plain() || d.bytesInOrder() != size || Runtime.Tracing() {
		return false, nil
	}
	m, err := tokens.get(d.Memory)
	if err != nil {
		return false, err
	}
	read := func(stop *backends.Stop) error {
		err := m.ReadUntil(stop, backends.Address(target), backends.Address(d.Pointer), size, backends.Stream(d.Stream))
		if released := m.Release(); err == nil {
			err = released
		}
		return err
	}
	slices, err := movement{to: backends.Malloc, from: backends.Allocator(d.Allocator), bytes: size}.long(d)
	switch {
	case err != nil:
		err = errors.Join(err, m.Release())
	case slices:
		err = inSlices(func(stop *backends.Stop) error {
			defer Calls.Leave(Calls.Enter())
			return read(stop)
		})
	default:
		err = read(nil)
	}
	var busy *BusyError
	return err == nil || errors.As(err, &busy), err
}

// WriteBytes makes d's elements those at source, ordinary host memory of size bytes in C order, which may be changed at
// return. It reports false, and has done nothing, where that takes more than one copy of bytes.
func WriteBytes(d *Descriptor, source uint64, size int) (done bool, err error) {
	defer Guard(&err)
	defer Calls.Leave(Calls.Enter())
	if !d.plain() || d.Flags&readOnlyFlag != 0 || d.bytesInOrder() != size || Runtime.Tracing() {
		return false, nil
	}
	slices, err := movement{to: backends.Allocator(d.Allocator), from: backends.Malloc, bytes: size,
		waits: d.waits()}.long(d)
	if slices || err != nil {
		return false, err // Write does it
	}
	m, err := tokens.get(d.Memory)
	if err != nil {
		return false, err
	}
	done, err = m.Write(backends.Address(d.Pointer), backends.Address(source), size, backends.Stream(d.Stream),
		gobuffer.Transfer(d.Transfer))
	if released := m.Release(); err == nil {
		err = released
	}
	return done && err == nil, err
}

// Covering returns a stream that covers all work pending on d's elements; zero if there is none.
func Covering(d *Descriptor) (s backends.Stream, err error) {
	err = on(d, func(a *gobuffer.Array) error {
		covering, busy, err := a.Covering()
		if busy {
			s = covering
		}
		return err
	})
	return s, err
}

// OrderBefore makes what is enqueued on stream s from now on run after all work that is pending on d's elements.
func OrderBefore(d *Descriptor, s backends.Stream) error {
	return on(d, func(a *gobuffer.Array) error { return a.Before(s) })
}
