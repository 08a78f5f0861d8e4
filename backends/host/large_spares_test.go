package host

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func TestLargeBlocksAreUsedAgain(t *testing.T) {
	b := New().(*Backend)
	const size = 40 << 20
	ask := backends.Request{Allocator: backends.Malloc, Device: backends.HostDevice, Size: size}
	at, err := b.Allocate(ask)
	require.NoError(t, err)
	region := backends.Region{Address: at, Allocator: backends.Malloc, Device: backends.HostDevice}
	require.NoError(t, b.Free(region, size, 0))
	if largeLimit() < size {
		assert.Empty(t, b.large.held().blocks, "the machine is too small to keep it")
		return
	}
	assert.Len(t, b.large.held().blocks, 1)

	ask.Size = size / 2
	other, err := b.Allocate(ask)
	require.NoError(t, err)
	assert.NotEqual(t, at, other, "half of a block would waste the other half")
	require.NoError(t, b.Free(backends.Region{Address: other, Allocator: backends.Malloc, Device: backends.HostDevice},
		ask.Size, 0))

	ask.Size = size - 5<<20
	again, err := b.Allocate(ask)
	require.NoError(t, err)
	require.Equal(t, at, again)
	assert.Zero(t, b.large.held().bytes)
	bytes := bytesAt(again, ask.Size)
	for i := 0; i < len(bytes); i += 4096 {
		bytes[i] = 1
	}
	require.NoError(t, b.Free(region, ask.Size, 0))

	ask.Zero, ask.Size = true, size
	zeros, err := b.Allocate(ask)
	require.NoError(t, err)
	for i, value := range bytesAt(zeros, size) {
		if value != 0 {
			t.Fatalf("byte %d is %d", i, value)
		}
	}
	require.NoError(t, b.Free(backends.Region{Address: zeros, Allocator: backends.Malloc, Device: backends.HostDevice},
		size, 0))
	require.NoError(t, b.Trim())
	assert.Empty(t, b.large.held().blocks)
}

// TestOnesThatAreNotAsLargePushNoneOut frees more of them than there is room for.
func TestOnesThatAreNotAsLargePushNoneOut(t *testing.T) {
	b := New().(*Backend)
	take := func(size int) backends.Region {
		at, err := b.Allocate(backends.Request{Allocator: backends.Malloc, Device: backends.HostDevice, Size: size})
		require.NoError(t, err)
		return backends.Region{Address: at, Allocator: backends.Malloc, Device: backends.HostDevice}
	}
	const large, medium = 40 << 20, smallestMedium + 1000
	kept := take(large)
	require.NoError(t, b.Free(kept, large, 0))
	if largeLimit() < 2*large {
		t.Fatal("the machine is too small to keep the block")
	}
	var blocks []backends.Region
	for range 2 * mostMedium {
		blocks = append(blocks, take(medium))
	}
	for _, region := range blocks {
		require.NoError(t, b.Free(region, medium, 0))
	}
	assert.Len(t, b.medium.held().blocks, mostMedium)
	assert.Equal(t, kept, take(large), "it is still there")
	take(medium)
	assert.Len(t, b.medium.held().blocks, mostMedium-1)

	require.NoError(t, b.LimitPool(backends.Malloc, backends.HostDevice, mediumShare*3*medium))
	assert.LessOrEqual(t, b.medium.held().bytes, 3*medium)
	assert.NotEmpty(t, b.medium.held().blocks)
	sum := b.Pools()[0]
	assert.EqualValues(t, mediumShare*3*medium, sum.Limit)
	assert.EqualValues(t, b.medium.held().bytes, sum.Cached)
	require.NoError(t, b.LimitPool(backends.Malloc, backends.HostDevice, 0))
	assert.Empty(t, b.medium.held().blocks)
	require.NoError(t, b.LimitPool(backends.Malloc, backends.HostDevice, backends.DefaultLimit))
}

// held is what is kept now: on a slow machine some of it is being offered to the system meanwhile.
func (s *largeSpares) held() (now struct {
	blocks []block
	bytes  int
}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now.blocks, now.bytes = slices.Clone(s.blocks), s.bytes
	return now
}

// TestLargeSparesHaveLimits frees blocks of random sizes: what is kept stays within the limits, and
// each block is given back once.
func TestLargeSparesHaveLimits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	s := largeSpares{count: mostLarge, usual: largeLimit, rest: usualRest}
	b := New().(*Backend)
	freed := map[backends.Address]int{}
	alive := map[backends.Address]bool{}
	free := func(at backends.Address) { freed[at]++; delete(alive, at); b.c.free(at) }
	for range 300 {
		size := smallestLarge + random.IntN(200<<20)
		at := s.take(size)
		if at == 0 {
			at = b.c.allocate(size, false)
			require.NotZero(t, at)
		}
		require.False(t, alive[at] && freed[at] > 0)
		alive[at], freed[at] = true, 0
		s.put(block{at: at, size: usable(at, size)}, free)
		total := 0
		for _, kept := range s.blocks {
			total += kept.size
		}
		assert.Equal(t, total, s.bytes)
		assert.LessOrEqual(t, total, largeLimit())
		assert.LessOrEqual(t, len(s.blocks), mostLarge)
	}
	s.drain(free)
	assert.Empty(t, alive)
}

// TestTheSystemMayTakeWhatHasWaited looks for the pages that the system may take in its account of
// the process.
func TestTheSystemMayTakeWhatHasWaited(t *testing.T) {
	s := largeSpares{count: mostLarge, usual: largeLimit, rest: 10 * time.Millisecond}
	free := func(at backends.Address) { cHeap{}.free(at) }
	defer s.drain(free)
	const size = 64 << 20
	at := cHeap{}.allocate(size, false)
	require.NotZero(t, at)
	memory := bytesAt(at, size)
	for i := 0; i < size; i += 4096 {
		memory[i] = 1
	}
	if largeLimit() < 2*size {
		t.Fatal("the machine is too small to keep the block")
	}
	before := lazilyFree(t)
	s.put(block{at: at, size: size}, free)
	assert.Eventually(t, func() bool { return lazilyFree(t) >= before+size*3/4>>10 }, 5*time.Second, 5*time.Millisecond)
	assert.Equal(t, at, s.take(size))
	s.put(block{at: at, size: size}, free)
	s.mutex.Lock()
	assert.False(t, s.blocks[0].offered, "it has been used since")
	s.mutex.Unlock()
}

// lazilyFree returns how many kilobytes of the process's memory the system may take.
func lazilyFree(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "LazyFree:")
	n, err := strconv.Atoi(strings.Fields(after)[0])
	require.NoError(t, err)
	return n
}
