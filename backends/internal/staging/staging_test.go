package staging

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
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
	still   bool
	stop    *backends.Stop
	slow    time.Duration // how long a call that fails takes
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
	if d.calls == d.failing {
		time.Sleep(d.slow)
	}
	return d.calls == d.failing
}

func (d *lateDevice) Device() int { return 0 }

func (d *lateDevice) NewArena(size int) (*Arena, error) {
	if d.fails() {
		return nil, errBroken
	}
	memory := make([]byte, size)
	d.marks.mutex.Lock()
	d.marks.kept = append(d.marks.kept, memory)
	d.marks.mutex.Unlock()
	return &Arena{Address: backends.Address(uintptr(unsafe.Pointer(&memory[0]))), Size: size}, nil
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
		if d.ran < mine && !d.still && d.random.IntN(3) == 0 {
			d.queue[d.ran]()
			d.ran++
		}
		return d.ran >= mine
	})
}

func (d *lateDevice) Stopped() bool { return d.stop.Asked() }

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
		e := &Engine{Threads: 1 + random.IntN(4), Chunk: 1 + random.IntN(40), folds: random.IntN(6)}
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
		require.NoError(t, e.Trim(func(*Arena) error { return nil }))
		assert.Zero(t, e.Held())
	}
}

// TestEveryCallMayFail has each call of the driver's fail once. Nothing hangs, no chunk is lost,
// and the next transfer is right.
func TestEveryCallMayFail(t *testing.T) {
	for _, up := range []bool{true, false} {
		for failing := 1; ; failing++ {
			random := rand.New(rand.NewPCG(uint64(failing), 2))
			e := &Engine{Threads: 3, Chunk: 16, Limit: 16 * 4, folds: random.IntN(4)}
			d := &lateDevice{random: random, marks: &marks{over: map[uintptr]func() bool{}}, memory: make([]byte, 200),
				failing: failing}
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
		assert.Equal(t, c.served, c.engine.Serves(0, c.size, true), fmt.Sprintf("%+v", c.engine))
	}
}

func TestChunksSuitTheSize(t *testing.T) {
	e := &Engine{}
	for size, chunk := range map[int]int{1: 128 << 10, 1 << 20: 512 << 10, 2 << 20: 1 << 20, 4 << 20: 256 << 10,
		16 << 20: 512 << 10, 64 << 20: 1 << 20, 127 << 20: 1 << 20, 128 << 20: 2 << 20, 1 << 30: 2 << 20} {
		assert.Equal(t, chunk, e.chunkSize(size), size)
	}
	for chunk, class := range map[int]int{128 << 10: 256 << 10, 256 << 10: 256 << 10, 512 << 10: 512 << 10,
		1 << 20: 2 << 20, 2 << 20: 2 << 20} {
		assert.Equal(t, class, e.class(chunk), chunk)
	}
	little := &Engine{Limit: 1 << 20}
	assert.Equal(t, 1<<20, little.class(1<<20), "no class within the limit is large enough")
	chosen := &Engine{Chunk: 1000}
	assert.Equal(t, 1000, chosen.class(chosen.chunkSize(1<<30)))
}

// TestSmallTransfersAreFewCopies, as the driver's calls take as long as the bytes.
func TestSmallTransfersAreFewCopies(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	d := &lateDevice{random: random, marks: &marks{over: map[uintptr]func() bool{}}, memory: make([]byte, 1<<20)}
	e := &Engine{Threads: 4}
	sent, got := randomBytes(random, 1<<20), make([]byte, 1<<20)
	require.NoError(t, e.Upload(d, sent))
	assert.LessOrEqual(t, len(d.queue), 3)
	require.NoError(t, e.Download(d, got))
	assert.LessOrEqual(t, len(d.queue), 6)
	assert.True(t, bytes.Equal(sent, got))
}

// TestNewChunksAreAShareOfATransfer counts them over the first transfers of a size.
func TestNewChunksAreAShareOfATransfer(t *testing.T) {
	e := &Engine{Threads: 8}
	d := &lateDevice{random: rand.New(rand.NewPCG(4, 4)), marks: &marks{over: map[uintptr]func() bool{}},
		memory: make([]byte, 16<<20)}
	host := make([]byte, 16<<20)
	var held []int
	for range 5 {
		require.NoError(t, e.Download(d, host))
		held = append(held, e.Held()>>20)
	}
	assert.Equal(t, []int{4, 8, 12, 16, 16}, held)
	require.NoError(t, e.Download(d, host[:4<<20]))
	assert.Equal(t, 16, e.Held()>>20, "there are chunks for all its pieces")
	require.NoError(t, e.Trim(func(a *Arena) error {
		assert.Equal(t, 4<<20, a.Size)
		assert.NotEmpty(t, a.Marks())
		return nil
	}))
	assert.Zero(t, e.Held())
}

// TestAnArenaInUseIsNotTrimmed has a transfer trim the engine that it works for.
func TestAnArenaInUseIsNotTrimmed(t *testing.T) {
	e := &Engine{Threads: 1, Chunk: 64, Limit: 64 * 8}
	d := &trimmingDevice{lateDevice{random: rand.New(rand.NewPCG(5, 5)), marks: &marks{over: map[uintptr]func() bool{}},
		memory: make([]byte, 64*20)}, e, 0}
	source := randomBytes(d.random, 64*20)
	require.NoError(t, e.Upload(d, source))
	d.finish()
	assert.Equal(t, source, d.memory)
	require.NoError(t, e.Upload(d, source[:64*3])) // by three of the eight chunks
	d.finish()
	assert.Zero(t, d.freed)
	require.NoError(t, e.Trim(func(*Arena) error { d.freed++; return nil }))
	assert.Equal(t, 1, d.freed)
	assert.Zero(t, e.Held())
}

// TestNobodyTouchesTheHostsBytesAfterAnError writes to them as soon as a transfer has failed.
func TestNobodyTouchesTheHostsBytesAfterAnError(t *testing.T) {
	const piece, pieces, block = 8 << 20, 4, 64 << 10
	host := make([]byte, piece*pieces)
	for failing := 2; failing < 3*pieces; failing++ {
		e := &Engine{Threads: 3, Chunk: piece}
		d := &lateDevice{random: rand.New(rand.NewPCG(uint64(failing), 8)), marks: &marks{over: map[uintptr]func() bool{}},
			memory: make([]byte, piece*pieces), failing: failing, slow: time.Millisecond}
		if e.Download(d, host) == nil {
			continue
		}
		for end := block; end <= len(host); end += block {
			host[end-1] = 7
		}
		time.Sleep(50 * time.Millisecond)
		for end := block; end <= len(host); end += block {
			require.EqualValues(t, 7, host[end-1], failing)
		}
	}
}

type trimmingDevice struct {
	lateDevice
	engine *Engine
	freed  int
}

func (d *trimmingDevice) Up(c *Chunk, offset, n int) error {
	if err := d.engine.Trim(func(*Arena) error { d.freed++; return nil }); err != nil {
		return err
	}
	return d.lateDevice.Up(c, offset, n)
}

// TestAStreamThatStandsStillKeepsItsChunksOnly: another one's transfers use the others.
func TestAStreamThatStandsStillKeepsItsChunksOnly(t *testing.T) {
	e := &Engine{Threads: 1, Chunk: 64, Limit: 64 * 6}
	shared := &marks{over: map[uintptr]func() bool{}}
	still := &lateDevice{random: rand.New(rand.NewPCG(6, 6)), marks: shared, memory: make([]byte, 64*3), still: true}
	require.NoError(t, e.Upload(still, make([]byte, 64*3)))
	other := &lateDevice{random: rand.New(rand.NewPCG(7, 7)), marks: shared, memory: make([]byte, 64*50)}
	source := randomBytes(other.random, 64*50)
	require.NoError(t, e.Upload(other, source))
	back := make([]byte, len(source))
	require.NoError(t, e.Download(other, back))
	assert.Equal(t, source, back)
	still.still = false
	still.finish()
}
