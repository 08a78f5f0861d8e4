package staging

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

var errBroken = errors.New("broken")

// lateDevice is a device whose copies happen when somebody asks, or never do. It belongs to one
// goroutine, as a stream's lane does; what is not done when a transfer ends happens in finish.
type lateDevice struct {
	memory  []byte
	random  *rand.Rand
	queue   []func() // copies in order
	ran     int
	marks   *marks
	calls   int
	failing int // the call that fails; zero is none
}

// marks says for all devices whether the copies are over that events stand for. Its mutex guards
// the devices' queues, too: a transfer asks of the copies of others.
type marks struct {
	mutex sync.Mutex
	last  uintptr
	over  map[uintptr]func() bool
	kept  [][]byte // so that chunks stay
}

func (m *marks) set(c *Chunk, over func() bool) {
	m.last++
	c.Mark.Event = m.last
	m.over[m.last] = over
}

func (d *lateDevice) fails() bool {
	d.calls++
	return d.calls == d.failing
}

func (d *lateDevice) NewChunk(size int) (*Chunk, error) {
	if d.fails() {
		return nil, errBroken
	}
	memory := make([]byte, size)
	d.marks.mutex.Lock()
	d.marks.kept = append(d.marks.kept, memory)
	d.marks.mutex.Unlock()
	return &Chunk{Address: backends.Address(uintptr(unsafe.Pointer(&memory[0]))), Size: size}, nil
}

func (d *lateDevice) Up(c *Chunk, offset, n int) error {
	if d.fails() {
		return errBroken
	}
	d.enqueue(c, func() { copy(d.memory[offset:], c.bytes(n)) })
	return nil
}

func (d *lateDevice) Down(c *Chunk, offset, n int) error {
	if d.fails() {
		return errBroken
	}
	d.enqueue(c, func() { copy(c.bytes(n), d.memory[offset:]) })
	return nil
}

func (d *lateDevice) enqueue(c *Chunk, work func()) {
	d.marks.mutex.Lock()
	defer d.marks.mutex.Unlock()
	d.queue = append(d.queue, work)
	mine := len(d.queue)
	d.marks.set(c, func() bool {
		if d.ran < mine && d.random.IntN(3) == 0 {
			d.queue[d.ran]()
			d.ran++
		}
		return d.ran >= mine
	})
}

func (d *lateDevice) Done(c *Chunk) (bool, error) {
	if d.fails() {
		return false, errBroken
	}
	d.marks.mutex.Lock()
	defer d.marks.mutex.Unlock()
	return d.marks.over[c.Mark.Event](), nil
}

func (d *lateDevice) finish() {
	d.marks.mutex.Lock()
	defer d.marks.mutex.Unlock()
	for ; d.ran < len(d.queue); d.ran++ {
		d.queue[d.ran]()
	}
}

func randomBytes(random *rand.Rand, n int) []byte {
	made := make([]byte, n)
	for i := range made {
		made[i] = byte(random.Uint32())
	}
	return made
}

// TestRandomTransfers moves random sizes through few chunks, one transfer after the other, as a
// stream has them: the copies of an upload may happen during the next transfer, or after it.
func TestRandomTransfers(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		e := &Engine{Threads: 1 + random.IntN(4), Chunk: 1 + random.IntN(40)}
		e.Limit = e.Chunk * (1 + random.IntN(6))
		d := &lateDevice{random: random, marks: &marks{over: map[uintptr]func() bool{}}}
		size := 1 + random.IntN(500)
		d.memory = make([]byte, size)
		want := make([]byte, size)
		for range 10 {
			if random.IntN(2) == 0 {
				source := randomBytes(random, size)
				require.NoError(t, e.Upload(d, source))
				copy(want, source)
				clear(source) // it has been read
			} else {
				got := randomBytes(random, size)
				require.NoError(t, e.Download(d, got))
				require.True(t, bytes.Equal(want, got), "seed %d", seed)
			}
			assert.LessOrEqual(t, e.Held(), e.Limit)
		}
		d.finish()
		require.True(t, bytes.Equal(want, d.memory), "seed %d", seed)
		require.NoError(t, e.Trim(func(c *Chunk) error { return nil }))
		assert.Zero(t, e.Held())
	}
}

// TestEveryCallMayFail has each call of the driver's fail once. Nothing hangs, no chunk is lost,
// and the next transfer is right.
func TestEveryCallMayFail(t *testing.T) {
	for _, up := range []bool{true, false} {
		for failing := 1; ; failing++ {
			random := rand.New(rand.NewPCG(uint64(failing), 2))
			e := &Engine{Threads: 3, Chunk: 16, Limit: 16 * 4}
			d := &lateDevice{random: random, marks: &marks{over: map[uintptr]func() bool{}}, memory: make([]byte, 200), failing: failing}
			host := randomBytes(random, 200)
			move := e.Download
			if up {
				move = e.Upload
			}
			err := move(d, host)
			failed := d.calls >= failing
			d.failing = 0
			held := e.Held()
			assert.Len(t, e.idle, held/16, "no chunk is lost")
			again := randomBytes(random, 200)
			require.NoError(t, e.Upload(d, again))
			back := make([]byte, 200)
			require.NoError(t, e.Download(d, back))
			require.Equal(t, again, back)
			if !failed {
				require.NoError(t, err)
				break
			}
			if err != nil && !errors.Is(err, errors.ErrUnsupported) { // a chunk that cannot be had is done without
				require.ErrorIs(t, err, errBroken)
			}
		}
	}
}

// TestTransfersAtOnce share an engine whose chunks are too few for all of them.
func TestTransfersAtOnce(t *testing.T) {
	e := &Engine{Threads: 2, Chunk: 64, Limit: 64 * 5}
	shared := &marks{over: map[uintptr]func() bool{}}
	var group sync.WaitGroup
	for number := range uint64(8) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(number, 3))
			d := &lateDevice{random: random, marks: shared, memory: make([]byte, 1000)}
			for range 50 {
				source := randomBytes(random, 1000)
				if err := e.Upload(d, source); errors.Is(err, errors.ErrUnsupported) {
					continue
				} else if !assert.NoError(t, err) {
					return
				}
				d.finish()
				assert.Equal(t, source, d.memory)
			}
		})
	}
	group.Wait()
	assert.LessOrEqual(t, e.Held(), e.Limit)
}

func TestWhatIsServed(t *testing.T) {
	for _, c := range []struct {
		engine *Engine
		size   int
		served bool
	}{
		{&Engine{Threads: 4}, smallest, true},
		{&Engine{Threads: 4}, smallest - 1, false},
		{&Engine{Threads: -1}, 1 << 30, false},
		{&Engine{Threads: -1, Chunk: 8}, 1 << 30, false},
		{&Engine{Chunk: 8}, 8, true},
		{&Engine{Chunk: 8}, 7, false},
		{&Engine{Threads: 4, Limit: -1}, 1 << 30, false},
	} {
		assert.Equal(t, c.served, c.engine.Serves(c.size), fmt.Sprintf("%+v", c.engine))
	}
}

func TestChunksSuitTheSize(t *testing.T) {
	e := &Engine{}
	assert.Equal(t, 256<<10, e.chunkSize(4<<20))
	assert.Equal(t, 512<<10, e.chunkSize(16<<20))
	assert.Equal(t, 2<<20, e.chunkSize(64<<20))
	assert.Equal(t, 2<<20, e.chunkSize(127<<20))
	assert.Equal(t, 4<<20, e.chunkSize(1<<30))
}

// TestNewChunksAreAShareOfATransfer counts them over the first transfers of a size.
func TestNewChunksAreAShareOfATransfer(t *testing.T) {
	e := &Engine{Threads: 8}
	random := rand.New(rand.NewPCG(4, 4))
	d := &lateDevice{random: random, marks: &marks{over: map[uintptr]func() bool{}}, memory: make([]byte, 8<<20)}
	host := make([]byte, 8<<20)
	var held []int
	for range 5 {
		require.NoError(t, e.Download(d, host))
		held = append(held, e.Held()>>10)
	}
	assert.Equal(t, []int{1024, 2048, 3072, 4096, 4096}, held)
	require.NoError(t, e.Download(d, host[:4<<20]))
	assert.Equal(t, 4096, e.Held()>>10, "there are chunks for all its pieces")
}
