package cuda

import (
	"errors"
	"fmt"
	"strconv"

	"hamr/backends"
	"hamr/backends/internal/staging"
)

// Settings of large copies between devices and ordinary host memory.
const (
	// ThreadsSetting is how many threads copy for the device; 0 leaves it to the driver. The
	// default is one less than the processors that the process may use, but at most 8.
	ThreadsSetting = "HAMR_COPY_THREADS"
	// ChunkSetting is into pieces of how many bytes such copies are cut, and from how many bytes
	// on. The default goes by the size, and begins with 4 MiB.
	ChunkSetting = "HAMR_COPY_CHUNK"
	// PinnedSetting bounds the page-locked memory that is held for them, in bytes: 128 MiB.
	PinnedSetting = "HAMR_PINNED_LIMIT"
)

func (b *Backend) readStaging() error {
	for _, s := range []struct {
		name string
		into *int
	}{{ThreadsSetting, &b.staging.Threads}, {ChunkSetting, &b.staging.Chunk}, {PinnedSetting, &b.staging.Limit}} {
		text := b.lookup(s.name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%s is %q: a number is needed", s.name, text)
		}
		if n == 0 {
			n = -1 // zero is the engine's word for no choice
		}
		*s.into = n
	}
	return nil
}

// lane is the way of one staged copy: a stream, and where it begins on the device.
type lane struct {
	visit  *visit
	device *device
	at     backends.Address
	stream backends.Stream
}

// stage copies between a device and ordinary host memory by way of page-locked chunks. The error is
// errors.ErrUnsupported, and nothing was begun, where the driver is to do it: what is small, and
// on streams of foreign contexts, whose events are not ours, or that are captured into graphs.
func (v *visit) stage(device int, at, host backends.Address, size int, stream backends.Stream, up bool) error {
	if !v.b.staging.Serves(size) {
		return errors.ErrUnsupported
	}
	d, err := v.b.device(device)
	if err != nil {
		return err
	}
	if v.context != d.context.Load() || v.captures(stream) {
		return errors.ErrUnsupported
	}
	l := &lane{v, d, at, stream}
	if up {
		return v.b.staging.Upload(l, hostBytes(host, size))
	}
	return v.b.staging.Download(l, hostBytes(host, size))
}

// captures reports whether the stream is, or may be, captured into a graph.
func (v *visit) captures(stream backends.Stream) bool {
	if v.b.driver.StreamIsCapturing == 0 {
		return true
	}
	return v.b.try(v.b.driver.StreamIsCapturing, uintptr(stream), v.slot(0)) != success || int32(v.out[0]) != 0
}

// NewChunk returns memory that all devices reach, with an event of this one's.
func (l *lane) NewChunk(size int) (*staging.Chunk, error) {
	v := l.visit
	if err := v.b.call(v.b.driver.MemHostAlloc, v.slot(0), uintptr(size), portable); err != nil {
		return nil, err
	}
	return &staging.Chunk{Address: backends.Address(v.out[0]), Size: size}, nil
}

// Up implements staging.Driver.
func (l *lane) Up(c *staging.Chunk, offset, n int) error {
	return l.copy(c, l.visit.b.driver.MemcpyToDevice, uintptr(l.at)+uintptr(offset), uintptr(c.Address), n)
}

// Down implements staging.Driver.
func (l *lane) Down(c *staging.Chunk, offset, n int) error {
	return l.copy(c, l.visit.b.driver.MemcpyToHostAsync, uintptr(c.Address), uintptr(l.at)+uintptr(offset), n)
}

func (l *lane) copy(c *staging.Chunk, function, to, from uintptr, n int) error {
	b := l.visit.b
	if err := l.mark(c); err != nil {
		return err
	}
	if err := b.call(function, to, from, uintptr(n), uintptr(l.stream)); err != nil {
		return err
	}
	err := b.call(b.driver.EventRecord, c.Mark.Event, uintptr(l.stream))
	if err != nil {
		// Nothing stands for the copy, and the chunk is used again.
		err = errors.Join(err, b.call(b.driver.StreamSynchronize, uintptr(l.stream)))
	}
	return err
}

// mark gives the chunk an event of this device's.
func (l *lane) mark(c *staging.Chunk) error {
	if c.Mark.Event != 0 && c.Mark.Device == l.device.number {
		return nil
	}
	e, err := l.visit.newEvent(l.device)
	if err != nil {
		return err
	}
	if c.Mark.Event != 0 {
		l.visit.b.devices[c.Mark.Device].events.put(c.Mark.Event)
	}
	c.Mark = staging.Mark{Event: e, Device: l.device.number}
	return nil
}

// Done implements staging.Driver. The chunk's last copy may have been another device's.
func (l *lane) Done(c *staging.Chunk) (bool, error) {
	b := l.visit.b
	if c.Mark.Device == l.device.number {
		return b.answered(b.driver.EventQuery, c.Mark.Event)
	}
	v, err := b.enter(c.Mark.Device, defaultStream)
	if err != nil {
		return false, err
	}
	defer v.leave()
	return b.answered(b.driver.EventQuery, c.Mark.Event)
}

// trimStaging gives idle chunks back, which waits for the devices.
func (b *Backend) trimStaging() error {
	return b.staging.Trim(func(c *staging.Chunk) error {
		if c.Mark.Event != 0 {
			b.devices[c.Mark.Device].events.put(c.Mark.Event)
		}
		return b.freeHere(backends.Region{Address: c.Address, Device: max(c.Mark.Device, 0)}, b.driver.MemFreeHost)
	})
}
