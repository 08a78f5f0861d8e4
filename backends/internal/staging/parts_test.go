package staging

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// TestRandomParts moves parts of random sizes, of which chunks hold many or a piece of one.
func TestRandomParts(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5))
		e := &Engine{Threads: 1 + random.IntN(4), Chunk: 1 + random.IntN(900), folds: random.IntN(6)}
		e.Limit = e.Chunk * (1 + random.IntN(6))
		var parts Parts
		for range 1 + random.IntN(8) {
			parts = parts.Add(make([]byte, 1+random.IntN([]int{5, 600}[random.IntN(2)])))
		}
		d := &lateDevice{random: random, marks: &marks{over: map[uintptr]func() bool{}}, memory: make([]byte, parts.Size())}
		want := make([]byte, parts.Size())
		for range 6 {
			if random.IntN(2) == 0 {
				for _, p := range parts {
					copy(p.Bytes, randomBytes(random, len(p.Bytes)))
					copy(want[p.Start:], p.Bytes)
				}
				require.NoError(t, e.UploadFrom(d, parts))
				for _, p := range parts {
					clear(p.Bytes) // it has been read
				}
				continue
			}
			require.NoError(t, e.DownloadTo(d, parts))
			for i, p := range parts {
				require.True(t, bytes.Equal(want[p.Start:p.Start+len(p.Bytes)], p.Bytes), "seed %d, part %d", seed, i)
			}
		}
	}
}

// TestRandomBlocks moves blocks of random sizes and numbers, of which chunks hold many or one of a few planes.
func TestRandomBlocks(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 6))
		e := &Engine{Threads: 1 + random.IntN(4), Chunk: 1 + random.IntN(900), folds: random.IntN(6)}
		size, extent := 1+random.IntN([]int{5, 1000}[random.IntN(2)]), 1+random.IntN(40)
		e.Limit = max(e.Chunk, size) * (1 + random.IntN(6))
		if seed%8 == 0 {
			e = &Engine{Threads: e.Threads} // which chooses
		}
		count, stride := 1+random.IntN(extent), size+random.IntN(2)*random.IntN(50)
		planes := make([]BlockPlane, 1+random.IntN(6))
		memories := make([][]byte, len(planes))
		for i := range planes {
			memories[i] = make([]byte, extent*stride)
			planes[i] = BlockPlane{backends.Address(uintptr(unsafe.Pointer(&memories[i][0]))), stride}
			if random.IntN(3) == 0 {
				planes[i] = BlockPlane{planes[i].Address + backends.Address((extent-1)*stride), -stride}
			}
		}
		var index []int64
		if random.IntN(4) > 0 {
			for _, i := range random.Perm(extent)[:count] {
				index = append(index, int64(i))
			}
			if random.IntN(2) == 0 {
				slices.Sort(index)
			}
		}
		d := &lateDevice{random: random, marks: &marks{over: map[uintptr]func() bool{}},
			memory: make([]byte, len(planes)*count*size)}
		sent := make([][]byte, len(planes))
		for i, m := range memories {
			copy(m, randomBytes(random, len(m)))
			sent[i] = bytes.Clone(m)
		}
		host := NewBlocks(planes, index, count, size)
		of := &blockDevice{d, host}
		require.NoError(t, e.UploadFrom(of, host))
		for i, m := range memories { // it has been read, and what lies between the blocks stays
			for k := range count {
				at := blockStart(i, k, planes, index, extent)
				clear(m[at : at+size])
			}
		}
		require.NoError(t, e.DownloadTo(of, host))
		for i, m := range memories {
			require.True(t, bytes.Equal(sent[i], m), "seed %d, plane %d", seed, i)
		}
		blocks, most := 0, max(e.chunkSize(host.Size()), size)
		for _, p := range host.loads {
			assert.LessOrEqual(t, p.Planes*p.Count*size, most)
			assert.LessOrEqual(t, p.Count, host.Most())
			blocks += p.Planes * p.Count
		}
		assert.Equal(t, len(planes)*count, blocks)
	}
}

// blockDevice is a late device where each block has its place, whatever the pieces are.
type blockDevice struct {
	*lateDevice
	host *Blocks
}

func (d *blockDevice) Up(c *Chunk, offset, _ int) error {
	return d.copy(c, offset, func(chunk, own []byte) { copy(own, chunk) })
}

func (d *blockDevice) Down(c *Chunk, offset, _ int) error {
	return d.copy(c, offset, func(chunk, own []byte) { copy(chunk, own) })
}

func (d *blockDevice) copy(c *Chunk, offset int, one func(chunk, own []byte)) error {
	p, size := d.host.Load(offset), d.host.size
	d.enqueue(c, func() {
		chunk := c.bytes(p.Planes * p.Count * size)
		for i := range p.Planes {
			at := ((p.Plane+i)*d.host.count + p.First) * size
			one(chunk[i*p.Count*size:][:p.Count*size], d.memory[at:])
		}
	})
	return nil
}

func blockStart(plane, k int, planes []BlockPlane, index []int64, extent int) int {
	if index != nil {
		k = int(index[k])
	}
	stride := planes[plane].Stride
	if stride < 0 {
		k -= extent - 1
	}
	return k * stride
}

func TestPartsBeginApart(t *testing.T) {
	parts := Parts(nil).Add(make([]byte, 1)).Add(make([]byte, 300)).Add(make([]byte, 7))
	assert.Equal(t, []int{0, 256, 768}, []int{parts[0].Start, parts[1].Start, parts[2].Start})
	assert.Equal(t, 775, parts.Size())
	assert.Zero(t, Parts(nil).Size())
	type seen struct{ part, from, to int }
	var got []seen
	parts.Each(100, 770, func(part, from, to int) { got = append(got, seen{part, from, to}) })
	assert.Equal(t, []seen{{1, 0, 300}, {2, 0, 2}}, got)
	parts.Each(556, 768, func(part, from, to int) { t.Error("there is nothing", part, from, to) })
}

func TestWhatIsGathered(t *testing.T) {
	for _, c := range []struct {
		engine      *Engine
		size, parts int
		gathered    bool
	}{
		{&Engine{Threads: 4}, 10, 2, true},
		{&Engine{Threads: 4}, 1 << 30, 2, true},
		{&Engine{Threads: 1}, 1 << 30, 2, true},
		{&Engine{Threads: -1}, 10, 2, false},
		{&Engine{Limit: -1}, 10, 2, false},
		{&Engine{}, 10, 2, true},
	} {
		assert.Equal(t, c.gathered, c.engine.Gathers(c.size, c.parts), "%+v", c.engine)
	}
}
