package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestADeletionEndsAllNames has one entry in the book end an object's names, however many they are.
func TestADeletionEndsAllNames(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	x := holdMany(t, c, 2, bytesOf(100))
	for i := range 2000 {
		require.NoError(t, c.PutName(background, fmt.Sprint(i), x[0].ID(), false))
	}
	end := func() int64 {
		s.Lock.Lock()
		defer s.Lock.Unlock()
		return s.Table.Book.End
	}
	before := end()
	require.NoError(t, c.Delete(background, x[0].ID(), false))
	assert.Less(t, end()-before, int64(1000))
	require.NoError(t, c.PutName(background, "1999", x[1].ID(), false))
	eventually(t, func() bool {
		s.Lock.Lock()
		defer s.Lock.Unlock()
		return len(s.Table.Names) == 1
	}, func() any { return s.Statistics() })
	assert.EqualValues(t, 1, s.Statistics().Names)
	for range 2 {
		assert.Zero(t, nameOf(t, c, "7"))
		assert.Equal(t, x[1].ID(), nameOf(t, c, "1999"))
		s = restart(t, s)
		rejoin(t, c)
		require.NoError(t, c.PutName(background, "8", x[1].ID(), false), "nobody has it")
		require.NoError(t, c.DropName(background, "8"))
	}
	releaseAll(t, x)
}

// TestNamesOfWhatWasEvicted do not come back with an object of which a slow client has a lease still.
func TestNamesOfWhatWasEvicted(t *testing.T) {
	for _, slowFirst := range []bool{false, true} {
		s := startServer(t, ServerOptions{})
		c, slow := newClient(t, s), newClient(t, s)
		x := holdMany(t, slow, 1, bytesOf(100_000))[0]
		kept := holdMany(t, c, 1, bytesOf(100))[0]
		for i := range 1500 {
			require.NoError(t, c.PutName(background, fmt.Sprint(i), x.ID(), false))
		}
		require.NoError(t, slow.take(background)) // so that it tells nothing
		other, err := c.Get(background, x.ID(), GetOptions{})
		require.NoError(t, err)
		s = restart(t, s)
		rejoin(t, c)
		assert.Equal(t, x.ID(), nameOf(t, c, "7"))
		require.NoError(t, other.Release())
		s.Lock.Lock()
		s.Table.Remove(s.Table.Objects[x.ID()], false, Evicted)
		s.Lock.Unlock()
		require.NoError(t, c.PutName(background, "8", kept.ID(), false))
		if slowFirst { // which has the book of the first server alone
			require.NoError(t, c.take(background))
			s = restart(t, s)
			slow.give()
			rejoin(t, slow)
			require.NoError(t, slow.PutName(background, "again", x.ID(), false))
			c.give()
			rejoin(t, c)
		} else {
			slow.give()
			rejoin(t, slow)
			require.NoError(t, slow.PutName(background, "again", x.ID(), false))
			s = restart(t, s)
			rejoin(t, c)
			rejoin(t, slow)
		}
		for range 2 {
			assert.Zero(t, nameOf(t, c, "7"))
			assert.Equal(t, kept.ID(), nameOf(t, c, "8"))
			assert.Equal(t, x.ID(), nameOf(t, c, "again"))
			s = restart(t, s)
			rejoin(t, c)
			rejoin(t, slow)
		}
		releaseAll(t, []*Object{x, kept})
	}
}

// TestFactsHaveALimit has names of objects that are gone be forgotten where all facts have too many bytes.
func TestFactsHaveALimit(t *testing.T) {
	const limit = 200 << 10
	s := startServer(t, ServerOptions{TableLimit: limit})
	c := newClient(t, s)
	x := holdMany(t, c, 1, bytesOf(100))[0]
	require.NoError(t, c.PutName(background, "kept", x.ID(), false))
	what := bytesOf(0)
	for i := range 100 {
		id := makeObject(t, c, what, 0)
		for j := range 100 {
			require.NoError(t, c.PutName(background, fmt.Sprint("a name of an object that goes ", i, " ", j), id, false))
		}
		require.NoError(t, c.Delete(background, id, false))
	}
	for _, most := range []int64{limit, 2 * limit} { // twice as much while clients may still tell of objects
		s.Lock.Lock()
		assert.Less(t, s.Table.Book.File.Bytes, most+1000)
		assert.Greater(t, s.Table.Book.File.Bytes, int64(limit/2))
		s.Lock.Unlock()
		assert.Equal(t, x.ID(), nameOf(t, c, "kept"))
		s = restart(t, s)
		rejoin(t, c)
	}
	releaseAll(t, []*Object{x})
}
