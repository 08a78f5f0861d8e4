package store

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/protocol"
)

func TestTheLeastRecentlyUsedIsEvicted(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20})
	c := newClient(t, s)
	what := bytesOf(256 << 10)
	what.Evictable = true
	var ids []ID
	for i := range 4 {
		ids = append(ids, makeObject(t, c, what, byte(i)))
	}
	leased, err := c.Get(background, ids[1], GetOptions{})
	require.NoError(t, err)
	used, err := c.Get(background, ids[0], GetOptions{})
	require.NoError(t, err)
	require.NoError(t, used.Release())
	require.NoError(t, c.Pin(background, ids[2]))
	makeObject(t, c, what, 9)
	there := func() (list []bool) {
		for _, id := range ids {
			is, _, err := c.Exists(background, id)
			require.NoError(t, err)
			list = append(list, is)
		}
		return list
	}
	assert.Equal(t, []bool{true, true, true, false}, there(), "the oldest but for those that are leased and pinned")
	require.NoError(t, c.SetEvictable(background, ids[0], false))
	makeObject(t, c, what, 10)
	assert.Equal(t, []bool{true, true, true, false}, there())

	_, err = c.Create(background, bytesOf(512<<10))
	var full *FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, "host", full.Memory)
	assert.EqualValues(t, 512<<10, full.Needed)
	assert.EqualValues(t, 1<<20, full.Limit)
	assert.Equal(t, []Holder{{Process: os.Getpid(), Bytes: 256 << 10}}, full.Holders)
	assert.Equal(t, []bool{true, true, true, false}, there(), "nothing is evicted in vain")
	require.NoError(t, leased.Release())
	require.NoError(t, c.Unpin(background, ids[2]))
	assert.EqualValues(t, 2, s.Statistics().Evicted)
}

func TestSlabsAreEvictedAndLetGoOf(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20})
	c, other := newClient(t, s), newClient(t, s)
	what := bytesOf(1000)
	what.Evictable = true
	var ids []ID
	for range 3000 {
		ids = append(ids, makeObject(t, c, what, 1))
		o, err := other.Get(background, ids[len(ids)-1], GetOptions{})
		require.NoError(t, err)
		require.Equal(t, byte(1), contents(t, o.Array())[999])
		require.NoError(t, o.Release())
	}
	f := s.Statistics()
	assert.LessOrEqual(t, f.Memories[0].Peak, int64(1<<20))
	assert.Greater(t, f.Evicted, int64(1000))
	for _, client := range []*Client{c, other} {
		_, _, err := client.Exists(background, ids[0])
		require.NoError(t, err)
	}
	eventually(t, func() bool { return s.Statistics().Memories[0].Lingering == 0 }, func() any { return s.Statistics() })
	other.mu.Lock()
	mapped := len(other.slabs)
	other.mu.Unlock()
	assert.LessOrEqual(t, mapped, 16)
}

func TestForceCountsNoMore(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20})
	c := newClient(t, s)
	id := makeObject(t, c, bytesOf(1<<20), 1)
	o, err := c.Get(background, id, GetOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Delete(background, id, true))
	m := s.Statistics().Memories[0]
	assert.Equal(t, [2]int64{0, 1 << 20}, [2]int64{m.Used, m.Lingering})
	assert.Equal(t, byte(1), contents(t, o.Array())[5])
	other := makeObject(t, c, bytesOf(1<<20), 2)
	require.NoError(t, o.Release())
	require.NoError(t, c.Delete(background, other, false))
	empty(t, s)
}

func TestWhatIsKnownOfObjectsIsLimited(t *testing.T) {
	s := startServer(t, ServerOptions{TableLimit: 100 << 10})
	c := newClient(t, s)
	what := bytesOf(0)
	what.Metadata = []byte(`"` + string(bytes.Repeat([]byte("m"), 20<<10)) + `"`)
	for range 4 {
		makeObject(t, c, what, 0)
	}
	_, err := c.Create(background, what)
	var full *FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, "table", full.Memory)
}

func TestSpilledObjectsComeBack(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20, Spill: folder(t)})
	c, other := newClient(t, s), newClient(t, s)
	var ids []ID
	const small = 600
	for i := range 12 {
		ids = append(ids, makeObject(t, c, bytesOf(256<<10), byte(i)), makeObject(t, other, bytesOf(small), byte(i)))
	}
	f := s.Statistics()
	assert.Positive(t, f.Spilled)
	assert.LessOrEqual(t, f.Memories[0].Peak, int64(1<<20))
	assert.Zero(t, f.Evicted)
	for range 2 {
		for i, id := range ids {
			o, err := c.Get(background, id, GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, bytes.Repeat([]byte{byte(i / 2)}, o.Array().Size()), contents(t, o.Array()))
			require.NoError(t, o.Release())
		}
	}
	assert.Positive(t, s.Statistics().Restored)
	files, err := os.ReadDir(s.Options.Spill)
	require.NoError(t, err)
	assert.Empty(t, files, "they have no names")
	for _, id := range ids {
		require.NoError(t, c.Delete(background, id, false))
	}
	require.NoError(t, c.Close())
	require.NoError(t, other.Close())
	empty(t, s)
	assert.Zero(t, s.Statistics().Spilled)
}

func TestAChangedSpillFileIsFound(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20, Spill: folder(t)})
	c := newClient(t, s)
	id := makeObject(t, c, bytesOf(1<<20), 1)
	makeObject(t, c, bytesOf(1<<20), 2)
	_, err := unix.Pwrite(spilledFile(t, s), []byte{9}, 5000)
	require.NoError(t, err)
	_, err = c.Get(background, id, GetOptions{})
	var failed *SystemError
	require.ErrorAs(t, err, &failed)
	assert.Contains(t, failed.Problem, "checksum")
}

func TestPutOfLargeArrays(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 4 << 20})
	c := newClient(t, s)
	require.NoError(t, gobuffer.Use(c.runtime.Backends()...))
	values := make([]float64, 300_000)
	for i := range values {
		values[i] = float64(i)
	}
	source, err := gobuffer.Adopt(values)
	require.NoError(t, err)
	defer source.Close()
	id, err := c.Put(background, source.Array, Description{Allocator: backends.Malloc})
	require.NoError(t, err)
	got, err := c.Get(background, id, GetOptions{})
	require.NoError(t, err)
	typed, err := gobuffer.Typed[float64](got.Array())
	require.NoError(t, err)
	copied := make([]float64, len(values))
	require.NoError(t, typed.Get(0, copied))
	assert.Equal(t, values, copied)
	require.NoError(t, got.Release())
	_, err = c.Put(background, source.Array, Description{Allocator: backends.Malloc})
	require.ErrorAs(t, err, new(*FullError))
	require.NoError(t, c.Close())
}

// TestOneConnectionTooMany is told so, whenever its first request comes.
func TestOneConnectionTooMany(t *testing.T) {
	s := startServer(t, ServerOptions{MaxSessions: 3})
	for range 3 {
		newClient(t, s)
	}
	for range 100 {
		_, err := Connect(background, s.Path(), newRuntime(t))
		var full *FullError
		require.ErrorAs(t, err, &full)
		require.Equal(t, FullError{Memory: "connections", Needed: 1, Limit: 3, Used: 3}, *full)
		require.ErrorContains(t, err, "as many connections as it may have, 3")
	}
	eventually(t, func() bool { return s.Statistics().Refused == 100 }, func() any { return s.Statistics() })
}

// TestMoreBytesThanThereAre counts none of them.
func TestMoreBytesThanThereAre(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	for _, what := range []Description{bytesOf(math.MaxInt64), bytesOf(math.MaxInt64 - 4096), bytesOn(math.MaxInt64, 0),
		bytesOn(math.MaxInt64-1<<40, 0)} {
		_, err := c.Create(background, what)
		require.Error(t, err)
		if what.Allocator == backends.Malloc {
			var full *FullError
			require.ErrorAs(t, err, &full)
			assert.Greater(t, full.Needed, int64(math.MaxInt64-2*4096))
		}
		assert.NotContains(t, err.Error(), " -")
	}
	eventually(t, func() bool {
		_, _, err := c.Exists(background, protocol.NewID())
		require.NoError(t, err)
		used := int64(0)
		for _, m := range s.Statistics().Memories {
			used += m.Used
		}
		return used == 0
	}, func() any { return s.Statistics() })
	assert.Equal(t, int64(math.MaxInt64-4095), protocol.RoundUp(math.MaxInt64, 4096))
	assert.Equal(t, int64(8192), protocol.RoundUp(4097, 4096))
}

func TestWaitingForOneObjectTwice(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	id := makeObject(t, c, bytesOf(10), 1)
	for count := range 3 {
		ready, err := c.Wait(background, []ID{id, id}, count)
		require.NoError(t, err)
		assert.Equal(t, []ID{id}, ready)
	}
	assert.Zero(t, s.Statistics().Breaches)
}
