package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
)

// TestANameThatIsGivenAgain has a client give an object a name that it has as far as the server knows, and another one
// tell afterwards that an earlier server had given it away, or dropped it.
func TestANameThatIsGivenAgain(t *testing.T) {
	for name, change := range map[string]func(c *Client, other ID) error{
		"replaced": func(c *Client, other ID) error { return c.PutName(background, "x", other, true) },
		"replaced, and dropped": func(c *Client, other ID) error {
			return errors.Join(c.PutName(background, "x", other, true), c.DropName(background, "x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, ServerOptions{})
			a, slow := newClient(t, s), newClient(t, s)
			x, other := holdMany(t, slow, 1, bytesOf(100))[0], holdMany(t, a, 1, bytesOf(100))[0]
			require.NoError(t, slow.PutName(background, "x", x.ID(), false))
			require.NoError(t, slow.take(background)) // so that it tells nothing
			s = restart(t, s)
			rejoin(t, a)
			require.NoError(t, change(a, other.ID()))
			require.NoError(t, a.take(background))
			s = restart(t, s)
			slow.give()
			require.Equal(t, x.ID(), nameOf(t, slow, "x"), "it knows no better yet")
			require.NoError(t, slow.PutName(background, "x", x.ID(), true))
			a.give()
			rejoin(t, a)
			for range 2 {
				assert.Equal(t, x.ID(), nameOf(t, a, "x"))
				s = restart(t, s)
				rejoin(t, a)
				rejoin(t, slow)
			}
			releaseAll(t, []*Object{x, other})
		})
	}
}

// TestABookOfLongEntriesDoesNotGrow has metadata change again and again that is longer than what is copied with each
// short entry.
func TestABookOfLongEntriesDoesNotGrow(t *testing.T) {
	id := protocol.NewID()
	b := book.New(1<<30, func(ID) bool { return true })
	require.NoError(t, b.Open())
	defer b.Close()
	for i := range 100_000 {
		var e protocol.Encoder
		e.Text(fmt.Sprint("a name ", i))
		e.ID(id)
		e.Flag(false)
		b.Note(protocol.OpPutName, e.Bytes)
	}
	var e protocol.Encoder
	e.ID(id)
	e.Blob(make([]byte, protocol.MostMetadata*3/2))
	most := int64(0)
	for range 2000 {
		b.Note(protocol.OpSetMetadata, e.Bytes)
		most = max(most, b.End-b.Start())
	}
	assert.Less(t, most, 3*b.File.Bytes+4*book.SpareBytes)
}
