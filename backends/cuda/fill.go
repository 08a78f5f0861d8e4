package cuda

import (
	"encoding/binary"
	"errors"

	"hamr/backends"
)

// seedRows is how many patterns the passes write before copies double them.
const seedRows = 4096

// Fill repeats pattern from dst on, by the driver's memory setting where the
// pattern is one of its elements, else by a kernel, else in passes.
func (b *copyFloor) Fill(dst backends.Region, pattern []byte, count int, stream backends.Stream) error {
	if dst.Allocator.Backend() != b.Name() {
		return b.notServed(dst.Allocator)
	}
	period := shortestPeriod(pattern)
	count *= len(pattern) / period
	pattern = pattern[:period]
	set := b.driver.setter(dst.Address, period)
	if set.width != period {
		err := b.fillByKernel(dst, pattern, count, stream)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		return b.fillByPasses(dst, pattern, count, stream)
	}
	v, err := b.enter(dst.Device, stream)
	if err != nil {
		return err
	}
	defer v.leave()
	return b.call(set.dense, uintptr(dst.Address), valueOf(pattern), uintptr(count), b.native(stream))
}

// shortestPeriod returns the length of the shortest run of bytes that pattern
// repeats a whole number of times.
func shortestPeriod(pattern []byte) int {
next:
	for period := 1; period < len(pattern); period++ {
		if len(pattern)%period != 0 {
			continue
		}
		for i := period; i < len(pattern); i++ {
			if pattern[i] != pattern[i-period] {
				continue next
			}
		}
		return period
	}
	return len(pattern)
}

func valueOf(element []byte) uintptr {
	switch len(element) {
	case 1:
		return uintptr(element[0])
	case 2:
		return uintptr(binary.NativeEndian.Uint16(element))
	}
	return uintptr(binary.NativeEndian.Uint32(element))
}

// setter is the driver's functions for elements of one width.
type setter struct {
	width          int
	dense, pitched uintptr
}

// setter returns the widest elements that an address is aligned for and a length
// is a multiple of.
func (d *EntryPoints) setter(at backends.Address, length int) setter {
	switch {
	case at%4 == 0 && length%4 == 0:
		return setter{4, d.Memset32, d.Memset32Pitched}
	case at%2 == 0 && length%2 == 0:
		return setter{2, d.Memset16, d.Memset16Pitched}
	}
	return setter{1, d.Memset8, d.Memset8Pitched}
}

// fillByPasses writes the elements of the first patterns column by column and
// copies what there is until it is enough.
func (b *copyFloor) fillByPasses(dst backends.Region, pattern []byte, count int, stream backends.Stream) error {
	v, err := b.enter(dst.Device, stream)
	if err != nil {
		return err
	}
	defer v.leave()
	set, length := b.driver.setter(dst.Address, len(pattern)), len(pattern)
	if set.pitched == 0 { // not every library has those of wider elements
		set = setter{1, b.driver.Memset8, b.driver.Memset8Pitched}
	}
	rows := min(count, seedRows)
	for i := 0; i < length; i += set.width {
		err := b.call(set.pitched, uintptr(dst.Address)+uintptr(i), uintptr(length), valueOf(pattern[i:i+set.width]),
			1, uintptr(rows), b.native(stream))
		if err != nil {
			return err
		}
	}
	for done := rows; done < count; {
		more := min(done, count-done)
		next := dst
		next.Address += backends.Address(done * length)
		if err := v.transfer(b.driver.MemcpyAsync, next, dst, more*length, stream); err != nil {
			return err
		}
		done += more
	}
	return nil
}
