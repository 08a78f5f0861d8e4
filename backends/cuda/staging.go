package cuda

import (
	"errors"

	"hamr/backends"
	"hamr/backends/internal/staging"
)

// stagingFloor is the floor of copies by way of page-locked memory.
type stagingFloor struct {
	poolFloor

	staging staging.Engine
}

// Staging implements backends.Stager.
func (b *stagingFloor) Staging() backends.Staging { return &b.staging }

// model names a device, so that what was measured on such devices can be found.
func (b *stagingFloor) model(number int) (staging.Model, error) {
	d, err := b.device(number)
	if err != nil {
		return staging.Model{}, err
	}
	text, err := b.deviceText(b.driver.DeviceGetName, d)
	return staging.Model{Name: text, Driver: b.dialect.VersionText(b.version)}, err
}

// lane is the way of one staged copy: a stream, and where it begins on the device.
type lane struct {
	b      *stagingFloor
	visit  *visit
	device *device
	at     backends.Address
	stream backends.Stream
	stop   *backends.Stop
}

// stage copies between a device and ordinary host memory by way of page-locked chunks. Where the driver should copy
// by itself, stage begins nothing and returns errors.ErrUnsupported: for small copies, on streams of foreign
// contexts, whose events are not ours, and on streams that are captured into graphs.
func (b *stagingFloor) stage(v *visit, device int, at, host backends.Address, size int, stream backends.Stream, up bool,
	stop *backends.Stop) error {
	if !b.staging.Serves(device, size, up) {
		return errors.ErrUnsupported
	}
	d, err := b.device(device)
	if err != nil {
		return err
	}
	if v.context != d.context.Load() || v.captures(stream) {
		return errors.ErrUnsupported
	}
	l := &lane{b, v, d, at, stream, stop}
	if up {
		return b.staging.Upload(l, hostBytes(host, size))
	}
	return b.staging.Download(l, hostBytes(host, size))
}

// Device implements staging.Driver.
func (l *lane) Device() int { return l.device.number }

// Stopped implements staging.Driver.
func (l *lane) Stopped() bool { return l.stop.Asked() }

// NewArena returns memory that all devices reach.
func (l *lane) NewArena(size int) (*staging.Arena, error) {
	at, err := l.b.takePinned(size)
	if err != nil {
		return nil, err
	}
	return &staging.Arena{Address: at, Size: size}, nil
}

// Up implements staging.Driver.
func (l *lane) Up(c *staging.Chunk, offset, n int) error {
	return l.copy(c, l.b.driver.MemcpyToDevice, uintptr(l.at)+uintptr(offset), uintptr(c.Address), n)
}

// Down implements staging.Driver.
func (l *lane) Down(c *staging.Chunk, offset, n int) error {
	return l.copy(c, l.b.driver.MemcpyToHostAsync, uintptr(c.Address), uintptr(l.at)+uintptr(offset), n)
}

func (l *lane) copy(c *staging.Chunk, function, to, from uintptr, n int) error {
	return l.enqueue(c, func() error { return l.b.call(function, to, from, uintptr(n), l.b.native(l.stream)) })
}

// enqueue enqueues copies of a chunk, and has its mark stand for them.
func (l *lane) enqueue(c *staging.Chunk, copies func() error) error {
	if err := l.mark(c); err != nil {
		return err
	}
	err := copies()
	if err == nil {
		//mutate:remove nothing stands for the copies of a chunk
		err = l.b.call(l.b.driver.EventRecord, c.Mark.Event, l.b.native(l.stream))
	}
	if err != nil {
		// Nothing stands for the copies, and the chunk is used again.
		//mutate:remove a chunk is used again while copies of it fail
		err = errors.Join(err, l.visit.finish(l.stream))
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
		_ = l.b.DestroyEvent(c.Mark.Device, backends.Event(c.Mark.Event))
	}
	c.Mark = staging.Mark{Event: e, Device: l.device.number}
	return nil
}

// Done implements staging.Driver. The chunk's last copy may have been another device's.
func (l *lane) Done(c *staging.Chunk) (bool, error) {
	b := l.b
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
func (b *stagingFloor) trimStaging() error {
	return b.staging.Trim(func(a *staging.Arena) error {
		for _, m := range a.Marks() {
			//mutate:skip page-locked chunks are given back while a device copies them
			err := b.SynchronizeEvent(m.Device, backends.Event(m.Event))
			_ = b.DestroyEvent(m.Device, backends.Event(m.Event))
			if err != nil && b.SynchronizeDevice(m.Device) != nil {
				return err // the device may use it for ever
			}
		}
		return b.givePinnedBack(a.Address)
	})
}
