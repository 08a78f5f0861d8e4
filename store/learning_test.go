package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/asking"
	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
)

// bookOf is another server's book, of names that an object has.
func bookOf(t *testing.T, id ID, names int) *book.Book {
	t.Helper()
	b := book.New(1<<30, func(ID) bool { return true })
	require.NoError(t, b.Open())
	t.Cleanup(b.Close)
	for i := range names {
		var e protocol.Encoder
		e.Text(fmt.Sprint(i))
		e.ID(id)
		e.Flag(false)
		b.Note(protocol.OpPutName, e.Bytes)
	}
	return b
}

// TestABookThatCannotBeWrittenDown is learned again, of an object that is there, after some of it was learned.
func TestABookThatCannotBeWrittenDown(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	x := holdMany(t, c, 1, bytesOf(100))[0]
	other := bookOf(t, x.ID(), 1000)
	left := 7
	s.Lock.Lock()
	s.Table.Book.WriteAt = func(number int, bytes []byte, at int64) (int, error) {
		if left--; left == 0 {
			n, _ := unix.Pwrite(number, bytes[:len(bytes)/2], at)
			return n, unix.ENOSPC
		} else if left < 0 {
			return 0, unix.ENOSPC
		}
		return unix.Pwrite(number, bytes, at)
	}
	s.Lock.Unlock()
	remember := func() error {
		return c.call(background, asking.Call{Operation: protocol.OpRemember, Descriptors: []int{other.Number}})
	}
	require.ErrorAs(t, remember(), new(*SystemError))
	require.ErrorAs(t, remember(), new(*SystemError))
	require.NoError(t, c.PutName(background, "meanwhile", x.ID(), false))
	s.Lock.Lock()
	s.Table.Book.WriteAt = unix.Pwrite
	s.Lock.Unlock()
	require.NoError(t, remember())
	for range 2 {
		assert.EqualValues(t, 1001, s.Statistics().Names)
		assert.Equal(t, x.ID(), nameOf(t, c, "999"))
		assert.Equal(t, x.ID(), nameOf(t, c, "0"))
		assert.Equal(t, x.ID(), nameOf(t, c, "meanwhile"))
		s = restart(t, s)
		rejoin(t, c)
	}
	releaseAll(t, []*Object{x})
}
