package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/backends/host"
	"hamr/store/internal/asking"
	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
)

// nameOf is the object of a name, or zero.
func nameOf(t *testing.T, c *Client, name string) ID {
	t.Helper()
	id, err := c.GetName(background, name, false)
	if err != nil {
		require.ErrorAs(t, err, new(*NotFoundError))
	}
	return id
}

// TestNamesAfterARestart has names replaced and dropped by others than who gave them.
func TestNamesAfterARestart(t *testing.T) {
	s := startServer(t, ServerOptions{})
	a, b, ended := newClient(t, s), newClient(t, s), newClient(t, s)
	x, y := holdMany(t, a, 1, bytesOf(100))[0], holdMany(t, b, 1, bytesOf(100))[0]
	for _, name := range []string{"latest", "dropped", "kept"} {
		require.NoError(t, a.PutName(background, name, x.ID(), false))
	}
	require.NoError(t, ended.PutName(background, "by one who ends", y.ID(), false))
	require.NoError(t, ended.Close())
	require.NoError(t, b.PutName(background, "latest", y.ID(), true))
	require.NoError(t, b.DropName(background, "dropped"))
	for range 3 {
		s = restart(t, s)
		for _, c := range []*Client{a, b} { // also who was told of the old name last tells of it first
			rejoin(t, c)
		}
		c := newClient(t, s)
		assert.Equal(t, y.ID(), nameOf(t, c, "latest"))
		assert.Zero(t, nameOf(t, c, "dropped"))
		assert.Equal(t, x.ID(), nameOf(t, c, "kept"))
		assert.Equal(t, y.ID(), nameOf(t, c, "by one who ends"))
	}
	require.NoError(t, a.Delete(background, x.ID(), false))
	assert.Zero(t, nameOf(t, b, "kept"))
	releaseAll(t, []*Object{x, y})
}

// TestAnOlderBookIsToldLast has a client miss a server, so that it tells the next one what held before.
func TestAnOlderBookIsToldLast(t *testing.T) {
	s := startServer(t, ServerOptions{})
	a, slow := newClient(t, s), newClient(t, s)
	x := holdMany(t, a, 2, bytesOf(100))
	for _, name := range []string{"moved", "dropped", "kept"} {
		require.NoError(t, a.PutName(background, name, x[0].ID(), false))
	}
	require.NoError(t, slow.Pin(background, x[0].ID()))
	require.NoError(t, slow.take(background))
	s = restart(t, s)
	rejoin(t, a)
	require.NoError(t, a.PutName(background, "moved", x[1].ID(), true))
	require.NoError(t, a.DropName(background, "dropped"))
	require.NoError(t, a.Unpin(background, x[0].ID()))
	s = restart(t, s)
	rejoin(t, a)
	slow.give()
	rejoin(t, slow)
	assert.Equal(t, x[1].ID(), nameOf(t, a, "moved"))
	assert.Zero(t, nameOf(t, a, "dropped"))
	assert.Equal(t, x[0].ID(), nameOf(t, a, "kept"))
	info, err := newClient(t, s).Describe(background, x[0].ID())
	require.NoError(t, err)
	assert.False(t, info.Pinned)
	releaseAll(t, x)
}

// TestMarksAfterARestart has objects pinned and made to stay by a client that has no lease of them.
func TestMarksAfterARestart(t *testing.T) {
	s := startServer(t, ServerOptions{})
	a, b := newClient(t, s), newClient(t, s)
	what := bytesOf(100)
	what.Evictable = true
	x := holdMany(t, a, 1, what)[0]
	require.NoError(t, b.Pin(background, x.ID()))
	require.NoError(t, b.SetEvictable(background, x.ID(), false))
	for _, pinned := range []bool{true, false} {
		s = restart(t, s)
		rejoin(t, a)
		info, err := a.Describe(background, x.ID())
		require.NoError(t, err)
		assert.Equal(t, []bool{pinned, false}, []bool{info.Pinned, info.Evictable})
		rejoin(t, b)
		require.NoError(t, b.Unpin(background, x.ID()))
	}
	releaseAll(t, []*Object{x})
}

// TestADeletionAfterARestart has an object stay deleted that another client still has.
func TestADeletionAfterARestart(t *testing.T) {
	s := startServer(t, ServerOptions{})
	a, b := newClient(t, s), newClient(t, s)
	x := holdMany(t, a, 3, bytesOf(100), bytesOf(100_000))
	require.NoError(t, a.Delete(background, x[2].ID(), false))
	require.NoError(t, b.Delete(background, x[0].ID(), false))
	require.NoError(t, b.Delete(background, x[1].ID(), true))
	s = restart(t, s)
	for _, c := range []*Client{a, b} {
		rejoin(t, c)
	}
	assert.Zero(t, s.Statistics().Objects)
	for _, o := range x {
		_, err := a.Get(background, o.ID(), GetOptions{})
		require.ErrorAs(t, err, new(*NotFoundError))
	}
	releaseAll(t, x)
}

// TestASealAfterARestart has a client tell of objects that it got before they were sealed.
func TestASealAfterARestart(t *testing.T) {
	for _, makerEnds := range []bool{false, true} {
		for _, getterFirst := range []bool{false, true} {
			for _, what := range []Description{bytesOf(0), bytesOf(100), bytesOf(100_000), bytesOn(0, 0), bytesOn(1000, 0)} {
				t.Run(fmt.Sprintf("%t/%t/%v/%v", makerEnds, getterFirst, what.Allocator, what.Shape), func(t *testing.T) {
					s := startServer(t, ServerOptions{})
					maker, getter := newDeviceClient(t, s, 1), newDeviceClient(t, s, 1)
					what.Metadata = []byte("1")
					sealed := holdMany(t, maker, 1, what)[0] // so that its slab can be had
					b := beginObject(t, maker, what, 7)
					early, err := getter.Get(background, b.ID(), GetOptions{Unsafe: true})
					require.NoError(t, err)
					require.NoError(t, maker.SetMetadata(background, b.ID(), []byte("2")))
					o, err := b.Seal(background)
					require.NoError(t, err)
					if makerEnds {
						require.NoError(t, maker.Close())
					}
					s = restart(t, s)
					order := []*Client{maker, getter}
					if getterFirst {
						order = []*Client{getter, maker}
					}
					for _, c := range order {
						if !c.isClosed() {
							rejoin(t, c)
						}
					}
					require.NoError(t, maker.Close())
					info, err := newDeviceClient(t, s, 1).Describe(background, b.ID())
					require.NoError(t, err)
					assert.True(t, info.Sealed)
					assert.Equal(t, "2", string(info.Metadata))
					releaseAll(t, []*Object{early, o, sealed})
				})
			}
		}
	}
}

// TestASealThatWasNotWrittenDown has a server end when it has sealed memory, and before it wrote that down.
func TestASealThatWasNotWrittenDown(t *testing.T) {
	s := startServer(t, ServerOptions{})
	maker, getter := newClient(t, s), newClient(t, s)
	b := beginObject(t, maker, bytesOf(100_000), 7)
	early, err := getter.Get(background, b.ID(), GetOptions{Unsafe: true})
	require.NoError(t, err)
	_, err = host.SealShared(early.held.mapping.descriptor)
	require.NoError(t, err)
	maker.mu.Lock()
	maker.closed = true // it has ended, too
	maker.mu.Unlock()
	s = restart(t, s)
	rejoin(t, getter)
	info, err := newClient(t, s).Describe(background, b.ID())
	require.NoError(t, err)
	assert.True(t, info.Sealed)
	releaseAll(t, []*Object{early})
}

// TestWhatItsMakerHasNotSealedGoesWithIt has one that got an object unsealed tell of it, and not its maker.
func TestWhatItsMakerHasNotSealedGoesWithIt(t *testing.T) {
	for _, makerEnds := range []bool{false, true} {
		for _, what := range []Description{bytesOf(0), bytesOf(100_000), bytesOn(1000, 0)} {
			s := startServer(t, ServerOptions{})
			maker, getter := newDeviceClient(t, s, 1), newDeviceClient(t, s, 1)
			b := beginObject(t, maker, what, 7)
			early, err := getter.Get(background, b.ID(), GetOptions{Unsafe: true})
			require.NoError(t, err)
			if makerEnds {
				// Its server ends with it.
				maker.mu.Lock()
				maker.closed = true
				maker.mu.Unlock()
			}
			s = restart(t, s)
			rejoin(t, getter)
			if makerEnds {
				require.NoError(t, early.Release())
				gone(t, getter)
				continue
			}
			rejoin(t, maker)
			require.NoError(t, early.Release())
			require.NoError(t, getter.Close())
			o, err := b.Seal(background)
			require.NoError(t, err)
			there, sealed, err := maker.Exists(background, o.ID())
			require.NoError(t, err)
			assert.True(t, there && sealed)
			releaseAll(t, []*Object{o})
			_ = s
		}
	}
}

// TestABookDoesNotGrow has names change again and again.
func TestABookDoesNotGrow(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	x := holdMany(t, c, 2, bytesOf(100))
	for i := range 30_000 {
		require.NoError(t, c.PutName(background, fmt.Sprint("name ", i%100), x[i/100%2].ID(), true))
	}
	s.Lock.Lock()
	b := s.Table.Book
	assert.Len(t, b.Facts, 100)
	assert.Less(t, b.End-b.Start(), int64(2*book.SpareBytes))
	assert.Less(t, blocksOf(t, b.Number)*512, int64(4*book.SpareBytes))
	s.Lock.Unlock()
	restart(t, s)
	rejoin(t, c)
	list, _, err := c.List(background, ListOptions{Named: true})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, x[1].ID(), list[0].ID)
	assert.Len(t, list[0].Names, 100)
	releaseAll(t, x)
}

// TestManyNamesOfOneObject are given and dropped in time that does not depend on how many there are.
func TestManyNamesOfOneObject(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	x := holdMany(t, c, 1, bytesOf(100))[0]
	for i := range 1000 {
		require.NoError(t, c.PutName(background, fmt.Sprint(i), x.ID(), false))
	}
	for i := range 1000 {
		if i%7 != 3 {
			require.NoError(t, c.DropName(background, fmt.Sprint(i)))
		}
	}
	for i := range 1000 {
		assert.Equal(t, i%7 == 3, nameOf(t, c, fmt.Sprint(i)) == x.ID())
	}
	require.NoError(t, c.Delete(background, x.ID(), false))
	releaseAll(t, []*Object{x})
	require.NoError(t, c.Close())
	empty(t, s)
}

// TestMoreNamesThanAreKeptOfWhatIsGone are there after a restart, since somebody has the object.
func TestMoreNamesThanAreKeptOfWhatIsGone(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	x := holdMany(t, c, 1, bytesOf(100))[0]
	s.Lock.Lock()
	for i := range book.MostOrphans + 1000 {
		var e protocol.Encoder
		e.Text(fmt.Sprint(i))
		e.ID(x.ID())
		e.Flag(false)
		s.Table.Name(s.Table.Objects[x.ID()], fmt.Sprint(i))
		s.Table.Note(protocol.OpPutName, e.Bytes)
	}
	s.Lock.Unlock()
	for range 2 {
		s = restart(t, s)
		rejoin(t, c)
		assert.EqualValues(t, book.MostOrphans+1000, s.Statistics().Names)
	}
	require.NoError(t, c.Delete(background, x.ID(), false))
	s.Lock.Lock()
	s.Table.Book.Keeps = 0
	for s.Table.Book.Tidy() {
	}
	assert.Len(t, s.Table.Book.Facts, book.MostOrphans)
	s.Lock.Unlock()
	releaseAll(t, []*Object{x})
}

// TestABookThatIsNone has a client send other things in place of a book.
func TestABookThatIsNone(t *testing.T) {
	s := startServer(t, ServerOptions{})
	good := newClient(t, s)
	x := holdMany(t, good, 1, bytesOf(100))[0]
	require.NoError(t, good.PutName(background, "x", x.ID(), false))
	send := func(bytes []byte) error {
		c := newClient(t, s)
		number := memoryFile(t, bytes)
		return c.call(background, asking.Call{Operation: protocol.OpRemember, Descriptors: []int{number}})
	}
	require.ErrorAs(t, send(nil), new(*ArgumentError))
	require.ErrorAs(t, send(make([]byte, book.Header-1)), new(*ArgumentError))
	require.NoError(t, send(make([]byte, 1<<20)))
	var e protocol.Encoder
	e.ID(protocol.NewID())
	e.U64(book.Header)
	e.U64(0)
	// Its time comes in a long while.
	f := book.Fact{When: 1 << 63, Operation: protocol.OpDropName, Payload: []byte("\x01\x00\x00\x00x")}
	f.Encode(&e)
	f = book.Fact{When: 1, Operation: protocol.OpDropName, Payload: []byte("\x01\x00\x00\x00x")} // older than what holds
	f.Encode(&e)
	s.Lock.Lock()
	now := s.Table.Book.Now()
	s.Lock.Unlock()
	f = book.Fact{When: now, Operation: protocol.OpCreate, Payload: []byte("what is in no book")}
	f.Encode(&e)
	require.NoError(t, send(e.Bytes))
	require.NoError(t, send(e.Bytes[:len(e.Bytes)-1]))
	c := newClient(t, s)
	require.ErrorAs(t, c.call(background, asking.Call{Operation: protocol.OpRemember}), new(*ProtocolError))
	assert.Equal(t, x.ID(), nameOf(t, good, "x"))
	releaseAll(t, []*Object{x})
}

func memoryFile(t *testing.T, bytes []byte) int {
	t.Helper()
	number, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(number) })
	if len(bytes) > 0 {
		_, err = unix.Pwrite(number, bytes, 0)
		require.NoError(t, err)
	}
	return number
}

func blocksOf(t *testing.T, number int) int64 {
	t.Helper()
	var found unix.Stat_t
	require.NoError(t, unix.Fstat(number, &found))
	return found.Blocks
}
