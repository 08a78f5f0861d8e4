package store

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/protocol"
)

// waitReady waits until there is ready memory of some bytes.
func waitReady(t testing.TB, s *served, size int64) {
	t.Helper()
	eventually(t, func() bool { return s.Statistics().Memories[0].Ready == size }, func() any { return s.Statistics() })
}

func arrayOf(t testing.TB, c *Client, values []byte) *gobuffer.Array {
	t.Helper()
	require.NoError(t, gobuffer.Use(c.runtime.Backends()...))
	source, err := gobuffer.Adopt(values)
	require.NoError(t, err)
	t.Cleanup(func() { _ = source.Close() })
	return source.Array
}

func TestReadyMemoryIsTakenInAnySize(t *testing.T) {
	const ready = 6 << 20
	s := startServer(t, ServerOptions{HostLimit: 64 << 20, Ready: ready})
	c := newClient(t, s)
	var hits, misses int64
	for _, size := range []int{
		protocol.LargeFrom, ready/2 - 5000, ready / 2, ready/2 + 1, ready - 4096, ready - 1, ready, ready + 1, ready + 4096,
		2*ready + 12345, 20 << 20,
	} {
		for _, put := range []bool{true, false} {
			waitReady(t, s, ready)
			values := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, size/7+1)[:size]
			var id ID
			if put {
				var err error
				id, err = c.Put(background, arrayOf(t, c, values), Description{Allocator: backends.Malloc})
				require.NoError(t, err)
			} else {
				b, err := c.Create(background, bytesOf(size))
				require.NoError(t, err)
				require.Equal(t, make([]byte, size), contents(t, b.Array()), "what is made is zero")
				require.NoError(t, b.Array().Write(arrayOf(t, c, values)))
				o, err := b.Seal(background)
				require.NoError(t, err)
				id = o.ID()
				require.NoError(t, o.Release())
			}
			if size >= ready/2-4095 {
				hits++
			}
			o, err := c.Get(background, id, GetOptions{})
			require.NoError(t, err)
			assert.True(t, bytes.Equal(values, contents(t, o.Array())), "%d bytes", size)
			require.NoError(t, o.Release())
			require.NoError(t, c.Delete(background, id, false))
			f := s.Statistics()
			assert.Equal(t, [2]int64{hits, misses}, [2]int64{f.ReadyHits, f.ReadyMisses}, "%d bytes", size)
		}
	}
	require.NoError(t, c.Close())
	waitReady(t, s, ready)
	empty(t, s)
}

func TestReadyMemoryIsGivenUpFirst(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20, Ready: 512 << 10})
	c := newClient(t, s)
	waitReady(t, s, 512<<10)
	m := s.Statistics().Memories[0]
	assert.EqualValues(t, 512<<10, m.Used, "it counts")
	what := bytesOf(200 << 10)
	what.Evictable = true
	var ids []ID
	for i := range 5 {
		ids = append(ids, makeObject(t, c, what, byte(i+1)))
	}
	f := s.Statistics()
	assert.Zero(t, f.Evicted, "what is ready goes before objects do")
	assert.LessOrEqual(t, f.Memories[0].Used, int64(1<<20))
	eventually(t, func() bool { m := s.Statistics().Memories[0]; return m.Used == 1000<<10 && m.Lingering == 0 },
		func() any { return s.Statistics() })
	for range 3 { // there is no room for it now, and nothing goes for it
		_, err := c.Get(background, ids[0], GetOptions{})
		require.NoError(t, err)
	}
	assert.Zero(t, s.Statistics().Memories[0].Ready)
	_, err := c.Create(background, bytesOf(1<<20))
	var full *FullError
	require.ErrorAs(t, err, &full)
	assert.EqualValues(t, 1<<20, full.Needed)
	require.NoError(t, c.Close())
	other := newClient(t, s)
	for _, id := range ids {
		require.NoError(t, other.Delete(background, id, false))
	}
	waitReady(t, s, 512<<10)
}

func TestWhatCannotBeMadeLeavesReadyMemory(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 2 << 20, Ready: 1 << 20})
	c := newClient(t, s)
	waitReady(t, s, 1<<20)
	for range 3 {
		_, err := c.Create(background, bytesOf(3<<20))
		var full *FullError
		require.ErrorAs(t, err, &full)
		assert.EqualValues(t, 3<<20, full.Needed)
		assert.EqualValues(t, 1<<20, s.Statistics().Memories[0].Ready)
	}
	makeObject(t, c, bytesOf(2<<20), 7) // more than is ready, and all that there is
	f := s.Statistics()
	assert.EqualValues(t, 1, f.ReadyHits)
	assert.EqualValues(t, 2<<20, f.Memories[0].Used)
}

func TestTwoClientsRaceForWhatIsReady(t *testing.T) {
	const size = 1 << 20
	s := startServer(t, ServerOptions{HostLimit: 64 << 20, Ready: size})
	clients := []*Client{newClient(t, s), newClient(t, s)}
	for round := range 30 {
		if round%2 == 0 {
			waitReady(t, s, size)
		}
		before := s.Statistics()
		ids := make([]ID, len(clients))
		var ended sync.WaitGroup
		for i, c := range clients {
			source := arrayOf(t, c, bytes.Repeat([]byte{byte(i + 1)}, size))
			ended.Go(func() {
				var err error
				ids[i], err = c.Put(background, source, Description{Allocator: backends.Malloc})
				assert.NoError(t, err)
			})
		}
		ended.Wait()
		after := s.Statistics()
		assert.EqualValues(t, 2, after.ReadyHits+after.ReadyMisses-before.ReadyHits-before.ReadyMisses)
		if round%2 == 0 {
			assert.Positive(t, after.ReadyHits-before.ReadyHits)
		}
		for i, id := range ids {
			o, err := clients[1-i].Get(background, id, GetOptions{})
			require.NoError(t, err)
			require.Equal(t, bytes.Repeat([]byte{byte(i + 1)}, size), contents(t, o.Array()))
			require.NoError(t, o.Release())
			require.NoError(t, clients[0].Delete(background, id, false))
		}
	}
	for _, c := range clients {
		require.NoError(t, c.Close())
	}
	empty(t, s)
}

func TestReadyMemoryOfKilledClients(t *testing.T) {
	path := folder(t) + "/store.sock"
	s := startServer(t, ServerOptions{Path: path, HostLimit: 8 << 20, Ready: 400 << 10})
	for i, step := range []string{"client-created", "client-mapped", "client-written", "client-sealing"} {
		waitReady(t, s, 400<<10)
		p := startRun(t, fmt.Sprintf("%s:%d", step, 5), "work", path, fmt.Sprint(i), "100")
		require.True(t, killed(p.wait(t)))
	}
	eventually(t, func() bool { f := s.Statistics(); return f.Sessions == 0 && f.Unsealed == 0 },
		func() any { return s.Statistics() })
	c := newClient(t, s)
	list, _, err := c.List(background, ListOptions{Unsealed: true})
	require.NoError(t, err)
	for _, info := range list {
		require.NoError(t, c.Delete(background, info.ID, false))
	}
	require.NoError(t, c.Close())
	waitReady(t, s, 400<<10)
	empty(t, s)
	assert.EqualValues(t, 400<<10, s.Statistics().Memories[0].Used)
}

func TestAServerEndsWhileItMakesMemoryReady(t *testing.T) {
	before := openDescriptors(t, os.Getpid())
	for range 5 {
		s, err := Listen(ServerOptions{Path: folder(t) + "/store.sock", HostLimit: 1 << 30, Ready: 256 << 20})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	assert.Equal(t, before, openDescriptors(t, os.Getpid()))
}

func TestReadyMemoryIsNoMoreThanTheLimit(t *testing.T) {
	for _, ready := range []int64{-1, 1<<20 + 1} {
		_, err := Listen(ServerOptions{Path: folder(t) + "/store.sock", HostLimit: 1 << 20, Ready: ready})
		var wrong *ArgumentError
		require.ErrorAs(t, err, &wrong)
		assert.Contains(t, err.Error(), "Ready")
	}
}

func TestMemoryThatCannotBeMadeReadyIsNoError(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 50, Ready: 1 << 49})
	c := newClient(t, s)
	for range 3 {
		eventually(t, func() bool { return s.Statistics().Memories[0].Used == 0 }, func() any { return s.Statistics() })
		require.NoError(t, c.Delete(background, makeObject(t, c, bytesOf(1<<20), 1), false))
	}
	m := s.Statistics().Memories[0]
	assert.Zero(t, m.Ready)
	assert.Zero(t, m.Lingering)
}
