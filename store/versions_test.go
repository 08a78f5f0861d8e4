package store

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/store/internal/asking"
	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
)

// replace has the model's object take a name from another one, which goes unless it has other names or is not sealed.
func (m *model) replace(c *Client, name string, id ID, o *modelObject) {
	had, taken := m.names[name]
	err := c.Replace(background, name, id, m.random.IntN(2) == 0)
	switch {
	case m.gone(id, err):
	case o == nil:
		require.ErrorAs(m.t, err, new(*NotFoundError))
	case !o.sealed:
		require.ErrorAs(m.t, err, new(*NotSealedError))
	default:
		require.NoError(m.t, err)
		if old := m.objects[had]; taken && had != id {
			if delete(old.names, name); old.sealed && len(old.names) == 0 {
				m.forget(had)
			}
		}
		m.names[name] = id
		o.names[name] = true
	}
}

func TestReplace(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	bound := bytesOf(100_000)
	bound.Session = true
	version := func(n byte, lasting bool) ID {
		other, err := Connect(background, s.Path(), newRuntime(t))
		require.NoError(t, err)
		id := makeObject(t, other, bound, n)
		require.NoError(t, other.Replace(background, "weights", id, lasting))
		require.NoError(t, other.Close())
		return id
	}
	first := version(1, true)
	old, err := c.Get(background, first, GetOptions{})
	require.NoError(t, err)
	second := version(2, true)
	assert.Equal(t, second, nameOf(t, c, "weights"))
	_, err = c.Get(background, first, GetOptions{})
	require.ErrorAs(t, err, new(*NotFoundError))
	assert.Equal(t, byte(1), contents(t, old.Array())[99_999])
	require.NoError(t, old.Release())

	require.NoError(t, c.PutName(background, "best", second, false))
	third := version(3, true)
	assert.Equal(t, second, nameOf(t, c, "best"), "it has another name")
	builder := beginObject(t, c, bytesOf(10), 4)
	require.ErrorAs(t, c.Replace(background, "weights", builder.ID(), false), new(*NotSealedError))
	require.ErrorAs(t, c.Replace(background, "weights", ID{1}, false), new(*NotFoundError))
	assert.Equal(t, third, nameOf(t, c, "weights"))
	require.NoError(t, c.Replace(background, "weights", third, false))
	assert.Equal(t, third, nameOf(t, c, "weights"))

	require.NoError(t, c.PutName(background, "being made", builder.ID(), false))
	require.NoError(t, c.Replace(background, "being made", second, false))
	o, err := builder.Seal(background)
	require.NoError(t, err, "its maker still wrote to it")
	require.NoError(t, o.Release())
	require.NoError(t, c.Delete(background, o.ID(), false))

	version(5, false)
	eventually(t, func() bool { return nameOf(t, c, "weights") == ID{} }, func() any { return "it outlives its session" })
	require.NoError(t, c.Delete(background, second, false))
	gone(t, c)
	require.Error(t, (*Client)(nil).Replace(background, "weights", second, false))
	require.ErrorAs(t, c.Replace(background, "", second, false), new(*ArgumentError))
}

// TestAVersionOfWhichTheServerDidNotKnow has an object replaced before its only client tells a new server of it.
func TestAVersionOfWhichTheServerDidNotKnow(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		s := startServer(t, ServerOptions{})
		slow := newClient(t, s)
		old := holdMany(t, slow, 2, bytesOf(100))
		require.NoError(t, slow.PutName(background, "weights", old[0].ID(), false))
		require.NoError(t, slow.PutName(background, "latest", old[1].ID(), false))
		require.NoError(t, slow.PutName(background, "best", old[1].ID(), false))
		require.NoError(t, slow.take(background))
		s = restart(t, s)
		c := newClient(t, s)
		x := holdMany(t, c, 2, bytesOf(100))
		require.NoError(t, c.Replace(background, "weights", x[0].ID(), false))
		require.NoError(t, c.Replace(background, "latest", x[1].ID(), false))
		if restarts {
			s = restart(t, s)
		}
		slow.give()
		rejoin(t, slow)
		rejoin(t, c)
		for _, asked := range []*Client{slow, c} {
			_, err := asked.Get(background, old[0].ID(), GetOptions{})
			require.ErrorAs(t, err, new(*NotFoundError))
			assert.Equal(t, x[0].ID(), nameOf(t, asked, "weights"))
			assert.Equal(t, x[1].ID(), nameOf(t, asked, "latest"))
			assert.Equal(t, old[1].ID(), nameOf(t, asked, "best"))
		}
		assert.Equal(t, int64(3), s.Statistics().Objects)
		releaseAll(t, append(x, old...))
	}
}

// TestTwoVersionsAfterOneOfWhichTheServerDidNotKnow has a name be replaced twice before the only client tells of what
// had it. While another book is read, a later entry of the name may follow.
func TestTwoVersionsAfterOneOfWhichTheServerDidNotKnow(t *testing.T) {
	s := startServer(t, ServerOptions{})
	slow := newClient(t, s)
	old := holdMany(t, slow, 1, bytesOf(100))[0]
	require.NoError(t, slow.PutName(background, "weights", old.ID(), false))
	require.NoError(t, slow.take(background)) // so that it tells nothing
	s = restart(t, s)
	c := newClient(t, s)
	x := holdMany(t, c, 2, bytesOf(100))
	require.NoError(t, c.Replace(background, "weights", x[0].ID(), false))
	require.NoError(t, c.PutName(background, "weights", x[1].ID(), true))
	reads := func(more int) {
		s.Lock.Lock()
		s.Table.Book.Learning += more
		s.Lock.Unlock()
	}
	there := func() (there []bool) {
		s.Lock.Lock()
		defer s.Lock.Unlock()
		for _, o := range append(x, old) {
			there = append(there, s.Table.Objects[o.ID()] != nil)
		}
		return there
	}
	reads(1)
	slow.give()
	rejoin(t, slow)
	assert.Equal(t, []bool{true, true, true}, there())
	reads(-1)
	other := bookOf(t, x[0].ID(), 1)
	require.NoError(t, c.call(background, asking.Call{Operation: protocol.OpRemember, Descriptors: []int{other.Number}}))
	for range 2 {
		assert.Equal(t, []bool{true, true, false}, there(), "PutName leaves what had the name")
		assert.Equal(t, x[1].ID(), nameOf(t, c, "weights"))
		s = restart(t, s)
		rejoin(t, c)
		rejoin(t, slow)
	}
	releaseAll(t, append(x, old))
}

// TestAVersionThatWasEvicted does not get its name back when what it has replaced is told of.
func TestAVersionThatWasEvicted(t *testing.T) {
	old, version := ID{1}, ID{2}
	b := book.New(1<<30, func(ID) bool { return true })
	var before, named, evicted protocol.Encoder
	book.EncodeNaming(&before, "weights", old, 0)
	book.EncodeNaming(&named, "weights", version, 200)
	b.Note(protocol.OpPutName, named.Bytes)
	evicted.Text("")
	evicted.ID(version)
	b.Note(protocol.OpDropName, evicted.Bytes)
	key := book.NameKey("weights")
	for when, goes := range map[uint64][]ID{200: nil, 199: {old}} {
		fact := book.Fact{When: when, Operation: protocol.OpPutName, Payload: before.Bytes}
		b.Learn([]book.Told{{Entry: &book.Entry{Fact: fact, Key: key}}}, 300)
		assert.Equal(t, goes, b.Outdone())
	}
	_, has := b.ObjectOf(&b.Facts[key].Fact)
	assert.False(t, has)
}

// TestAVersionThatNobodyWaitsFor ends calls by their contexts while the server, which has the request, stands still.
// What is given up then stays if it has replaced another one.
func TestAVersionThatNobodyWaitsFor(t *testing.T) {
	server := startServerProcess(t)
	c, err := Connect(background, server.Args[2], newRuntime(t))
	require.NoError(t, err)
	defer c.Close()
	for _, isThere := range []bool{true, false} {
		old, id := makeObject(t, c, bytesOf(70_000), 1), makeObject(t, c, bytesOf(70_000), 2)
		require.NoError(t, c.PutName(background, "weights", old, true))
		ctx, cancel := context.WithTimeout(background, 30*time.Millisecond)
		if !isThere {
			require.NoError(t, c.Delete(background, id, false))
			id = makeObject(t, c, bytesOf(70_000), 3)
			beginObject(t, c, bytesOf(10), 4)
		}
		standStill(t, server.Process)
		if isThere {
			err = c.Replace(ctx, "weights", id, false)
		} else { // it never has the name
			err = c.Replace(ctx, "weights", ID{1}, false)
		}
		cancel()
		c.Discard(id)
		require.NoError(t, server.Process.Signal(syscall.SIGCONT))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var figures Statistics
		eventually(t, func() bool {
			figures, err = c.Statistics(background)
			require.NoError(t, err)
			return figures.Objects-figures.Unsealed == 1
		}, func() any { return figures })
		assert.Equal(t, map[bool]ID{true: id, false: old}[isThere], nameOf(t, c, "weights"))
		require.NoError(t, c.Delete(background, nameOf(t, c, "weights"), false))
	}
	assert.Empty(t, c.deletes)
}

func TestWatchesOfNames(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	w, err := c.WatchName(background, "weights")
	require.NoError(t, err)
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(background, 30*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	_, err = w.Next(soon(), ID{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	x := holdMany(t, c, 3, bytesOf(100))
	for i, o := range x[:2] {
		known := ID{}
		if i > 0 {
			known = x[i-1].ID()
		}
		require.NoError(t, c.PutName(background, "weights", o.ID(), true))
		found, err := w.Next(background, known)
		require.NoError(t, err)
		assert.Equal(t, o.ID(), found)
		again, err := c.WaitName(background, "weights", known)
		require.NoError(t, err)
		assert.Equal(t, found, again)
	}
	known := x[1].ID()
	_, err = w.Next(soon(), known)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	stopped, stop := context.WithCancel(background)
	waited := make(chan error)
	go func() {
		_, err := c.WaitName(stopped, "weights", known)
		waited <- err
	}()
	eventually(t, func() bool { return waits(s)[1] == 1 }, func() any { return waits(s) })
	time.Sleep(10 * time.Millisecond) // for both requests to be there
	require.NoError(t, c.DropName(background, "weights"))
	require.NoError(t, c.PutName(background, "weights", known, false))
	_, err = w.Next(soon(), known)
	require.ErrorIs(t, err, context.DeadlineExceeded, "it is the same object")
	stop()
	require.ErrorIs(t, <-waited, context.Canceled)

	s = restart(t, s)
	rejoin(t, c)
	require.NoError(t, c.PutName(background, "weights", x[2].ID(), true))
	found, err := w.Next(background, known)
	require.NoError(t, err)
	assert.Equal(t, x[2].ID(), found)
	found, err = w.Next(background, ID{}) // an answer was lost
	require.NoError(t, err)
	assert.Equal(t, x[2].ID(), found)

	ended := make(chan error)
	go func() {
		_, err := w.Next(background, found)
		ended <- err
	}()
	time.Sleep(10 * time.Millisecond)
	require.NoError(t, w.Close())
	require.ErrorIs(t, <-ended, ErrClosed)
	_, err = w.Descriptor(found)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, w.Close())

	w, err = c.WatchName(background, "weights")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = w.Next(background, found)
	require.ErrorAs(t, err, new(*LostError))
	_, err = c.WatchName(background, "weights")
	require.ErrorAs(t, err, new(*LostError))
	releaseAll(t, x)
	require.NoError(t, c.Close())
	_, err = w.Next(background, found)
	require.ErrorIs(t, err, ErrClosed)
	for _, none := range []*NameWatch{nil, {}} {
		_, err = none.Next(background, ID{})
		require.ErrorContains(t, err, "nil or a zero value")
		_, err = none.Descriptor(ID{})
		require.True(t, errors.As(err, new(*ArgumentError)))
		require.NoError(t, none.Close())
	}
}
