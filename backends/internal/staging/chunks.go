package staging

import (
	"cmp"
	"errors"
	"slices"

	"hamr/backends"
)

// Arena is page-locked memory that was taken at once, of which the chunks are parts.
type Arena struct {
	Address backends.Address
	Size    int

	chunks []*Chunk
	idle   int // of them; the Engine's mutex guards it
}

// Marks returns what stands for the last copies of the chunks. It is for Engine.Trim's argument.
func (a *Arena) Marks() []Mark {
	var marks []Mark
	for _, c := range a.chunks {
		if c.Mark.Event != 0 {
			marks = append(marks, c.Mark)
		}
	}
	return marks
}

// Chunk is page-locked memory that one transfer uses at a time.
type Chunk struct {
	Address backends.Address
	Size    int
	// Mark is the Driver's: it stands for the last copy of the chunk.
	Mark    Mark
	pending bool
	arena   *Arena
}

// bytes returns the first n bytes of the chunk.
func (c *Chunk) bytes(n int) []byte { return memory(c.Address, n) }

// Mark is an event of a device.
type Mark struct {
	Event  uintptr
	Device int
}

// take returns up to count chunks for pieces of a size: idle ones first, then new ones. There is
// at least one, or errors.ErrUnsupported if others have them all, or there is no more such memory.
// New ones are no more than a share of the transfer, which would otherwise take longer than
// the driver does: the next ones have those.
func (e *Engine) take(d Driver, count, size, transfer int) ([]*Chunk, error) {
	taken := e.takeIdle(count, size)
	if more := count - len(taken); more > 0 {
		class := e.class(size)
		taken = append(taken, e.grow(d, min(more, max(transfer/share/class, fewest)), class)...)
	}
	if len(taken) == 0 {
		return nil, errors.ErrUnsupported
	}
	return taken, nil
}

// takeIdle prefers chunks that nothing waits for, and small ones.
func (e *Engine) takeIdle(count, size int) []*Chunk {
	e.mu.Lock()
	defer e.mu.Unlock()
	var taken, left []*Chunk
	slices.SortStableFunc(e.idle, func(a, b *Chunk) int {
		if a.pending != b.pending {
			if b.pending {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Size, b.Size)
	})
	for _, c := range e.idle {
		if len(taken) < count && c.Size >= size {
			taken = append(taken, c)
			c.arena.idle--
		} else {
			left = append(left, c)
		}
	}
	e.idle = left
	return taken
}

// grow makes up to count chunks of a size.
func (e *Engine) grow(d Driver, count, size int) []*Chunk {
	e.mu.Lock()
	count = min(count, (e.limit()-e.bytes)/size)
	if count <= 0 {
		e.mu.Unlock()
		return nil
	}
	e.bytes += count * size
	e.mu.Unlock()
	arena, err := d.NewArena(count * size)
	if err != nil {
		e.mu.Lock()
		e.bytes -= count * size
		e.mu.Unlock()
		return nil
	}
	for i := range count {
		arena.chunks = append(arena.chunks,
			&Chunk{Address: arena.Address + backends.Address(i*size), Size: size, arena: arena})
	}
	return slices.Clone(arena.chunks)
}

// giveBack keeps chunks for the next transfer, which waits for those still pending.
func (e *Engine) giveBack(chunks []*Chunk) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, chunks...)
	for _, c := range chunks {
		c.arena.idle++
	}
}

// Trim takes the arenas out that no transfer uses; free gives each back once its copies are over.
func (e *Engine) Trim(free func(*Arena) error) error {
	e.mu.Lock()
	var arenas []*Arena
	var left []*Chunk
	for _, c := range e.idle {
		switch a := c.arena; {
		//mutate:never an arena is given back while a transfer uses a part of it
		case a.idle < len(a.chunks):
			left = append(left, c)
		case !slices.Contains(arenas, a):
			arenas = append(arenas, a)
			e.bytes -= a.chunks[0].Size * len(a.chunks)
		}
	}
	e.idle = left
	e.mu.Unlock()
	var failed error
	for _, a := range arenas {
		failed = errors.Join(failed, free(a))
	}
	return failed
}
