//go:build trial

package trial

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"hamr/backends"
	"hamr/backends/internal/staging"
)

// Staging implements backends.Stager.
func (b *Backend) Staging() backends.Staging { return &b.staging }

func (b *Backend) model(number int) (staging.Model, error) {
	return staging.Model{Name: fmt.Sprintf("Trial device %d", number), Driver: "1.0"}, nil
}

// arena is page-locked memory: what lies in it may be copied late.
type arena struct {
	data []byte
	gone bool // given back
}

// lane is the way of one staged copy: a queue, and where it begins on the device.
type lane struct {
	b     *Backend
	queue *queue
	at    backends.Region
}

// stage copies between a device and ordinary host memory by way of page-locked memory. It begins nothing and returns
// errors.ErrUnsupported where the copy should be enqueued as it is: for small or mapped memory. It is called without
// the lock.
func (b *Backend) stage(dst, src backends.Region, size int, s backends.Stream) (backends.Progress, error) {
	up := dst.Allocator.Backend() == name
	at, host := dst, src
	if !up {
		at, host = src, dst
	}
	if at.Allocator.Backend() != name || host.Allocator.Backend() == name || !b.staging.Serves(at.Device, size, up) {
		return backends.Complete, errors.ErrUnsupported
	}
	l, err := b.lane(at, host, size, s)
	if err != nil {
		return backends.Complete, err
	}
	if up {
		return backends.Writing, b.staging.Upload(l, hostBytes(host.Address, size))
	}
	return backends.Complete, b.staging.Download(l, hostBytes(host.Address, size))
}

func (b *Backend) lane(at, host backends.Region, size int, s backends.Stream) (*lane, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, err := b.part("Copy", at, size); err != nil {
		return nil, err
	}
	ordinary, err := b.part("Copy", host, size)
	if err != nil {
		return nil, err
	}
	if ordinary.lent != nil {
		return nil, errors.ErrUnsupported
	}
	q, err := b.queueFor("Copy", s, at.Device)
	return &lane{b, q, at}, err
}

// Device implements staging.Driver.
func (l *lane) Device() int { return l.queue.device }

// Stopped implements staging.Driver: Copy is not asked to end before its time.
func (l *lane) Stopped() bool { return false }

// NewArena implements staging.Driver.
func (l *lane) NewArena(size int) (*staging.Arena, error) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	if err := l.b.enter("LockPages"); err != nil {
		return nil, err
	}
	data, err := mmap((size+page-1)/page*page, syscall.PROT_READ|syscall.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	l.b.arenas = append(l.b.arenas, &arena{data: data})
	return &staging.Arena{Address: addressOf(data), Size: size}, nil
}

// Up implements staging.Driver.
func (l *lane) Up(c *staging.Chunk, offset, n int) error {
	return l.copy("StageUp", c, offset, n, true)
}

// Down implements staging.Driver.
func (l *lane) Down(c *staging.Chunk, offset, n int) error {
	return l.copy("StageDown", c, offset, n, false)
}

func (l *lane) copy(call string, c *staging.Chunk, offset, n int, up bool) error {
	b := l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter(call); err != nil {
		return err
	}
	at := l.at
	at.Address += backends.Address(offset)
	remote, err := b.part(call, at, n)
	if err != nil {
		return err
	}
	locked := b.arenaOf(c.Address)
	chunk := hostBytes(c.Address, n)
	b.enqueueOrdered(l.queue, "staged copy", []part{remote}, func() {
		switch {
		case locked == nil || locked.gone:
			_ = b.violate("Execute", "a late copy uses page-locked memory that was given back")
		case up:
			copy(remote.bytes(), chunk)
		default:
			copy(chunk, remote.bytes())
		}
	})
	delete(b.marks, c.Mark.Event)
	b.marked++
	b.marks[b.marked] = l.queue.barrier
	c.Mark = staging.Mark{Event: b.marked, Device: l.queue.device}
	return nil
}

func (b *Backend) arenaOf(at backends.Address) *arena {
	i := slices.IndexFunc(b.arenas, func(a *arena) bool {
		return at >= addressOf(a.data) && at < addressOf(a.data)+backends.Address(len(a.data))
	})
	if i < 0 {
		return nil
	}
	return b.arenas[i]
}

// Done implements staging.Driver. It does some work, so that polling ends.
func (l *lane) Done(c *staging.Chunk) (bool, error) {
	b := l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter("StageDone"); err != nil {
		return false, err
	}
	if b.marks[c.Mark.Event].done {
		return true, nil
	}
	b.step()
	return false, nil
}

// Trim gives page-locked memory back that no copy uses.
func (b *Backend) Trim() error {
	return b.staging.Trim(func(a *staging.Arena) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, m := range a.Marks() {
			b.finish(b.marks[m.Event])
			delete(b.marks, m.Event)
		}
		locked := b.arenaOf(a.Address)
		locked.gone = true
		b.arenas = slices.DeleteFunc(b.arenas, func(a *arena) bool { return a == locked })
		return munmap(locked.data)
	})
}
