package store

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/protocol"
)

func TestAnObjectsLife(t *testing.T) {
	for _, size := range []int{0, 1, 1000, protocol.LargeFrom - 1, protocol.LargeFrom, 3<<20 + 5} {
		s := startServer(t, ServerOptions{})
		maker, reader := newClient(t, s), newClient(t, s)
		what := bytesOf(size)
		what.Metadata = []byte(`{"unit": "K"}`)
		b, err := maker.Create(background, what)
		require.NoError(t, err)
		fill(t, b.Array(), 7)

		_, err = reader.Get(background, b.ID(), GetOptions{})
		var unsealed *NotSealedError
		require.ErrorAs(t, err, &unsealed)
		there, sealed, err := reader.Exists(background, b.ID())
		require.NoError(t, err)
		assert.True(t, there && !sealed)

		o, err := b.Seal(background)
		require.NoError(t, err)
		assert.True(t, o.Array().ReadOnly() || size == 0)
		_, err = b.Seal(background)
		require.ErrorIs(t, err, ErrClosed)
		got, err := reader.Get(background, o.ID(), GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, bytes.Repeat([]byte{7}, size), contents(t, got.Array()))
		assert.JSONEq(t, `{"unit": "K"}`, string(got.Info().Metadata))
		assert.Equal(t, []int{size}, got.Array().Layout().Shape)

		require.NoError(t, maker.Delete(background, o.ID(), false))
		_, err = reader.Get(background, o.ID(), GetOptions{})
		var absent *NotFoundError
		require.ErrorAs(t, err, &absent)
		require.NoError(t, o.Release())
		assert.Equal(t, bytes.Repeat([]byte{7}, size), contents(t, got.Array()), "it was deleted, and is leased")
		require.NoError(t, got.Release())
		require.NoError(t, maker.Close())
		require.NoError(t, reader.Close())
		empty(t, s)
	}
}

func TestAViewKeepsTheLease(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c, other := newClient(t, s), newClient(t, s)
	for _, size := range []int{100, 1 << 20} {
		id := makeObject(t, c, bytesOf(size), 3)
		o, err := other.Get(background, id, GetOptions{})
		require.NoError(t, err)
		view, err := o.Array().Slice(0, 10, 20, 1)
		require.NoError(t, err)
		require.NoError(t, o.Release())
		require.NoError(t, c.Delete(background, id, false))
		makeObject(t, c, bytesOf(size), 4) // would take the place
		assert.Equal(t, bytes.Repeat([]byte{3}, 10), contents(t, view))
		require.NoError(t, view.Close())
	}
}

func TestWhatIsUnsafeIsSharedAsItIsWritten(t *testing.T) {
	s := startServer(t, ServerOptions{})
	maker, other := newClient(t, s), newClient(t, s)
	for _, size := range []int{100, 1 << 20} {
		what := bytesOf(size)
		what.Separate = true
		b, err := maker.Create(background, what)
		require.NoError(t, err)
		o, err := other.Get(background, b.ID(), GetOptions{Unsafe: true})
		require.NoError(t, err)
		fill(t, o.Array(), 9)
		assert.Equal(t, byte(9), contents(t, b.Array())[size-1])
		fill(t, b.Array(), 8)
		assert.Equal(t, byte(8), contents(t, o.Array())[0])
		require.NoError(t, b.Abort(background))
		require.NoError(t, o.Release())
	}
	_, err := maker.Create(background, Description{Type: arrayiface.Float64, Shape: []int{2},
		Allocator: backends.CUDAHost})
	var wrong *ArgumentError
	require.ErrorAs(t, err, &wrong)
	require.NoError(t, maker.Close())
	empty(t, s)
}

func TestMemoryIsUsedAgain(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 4 << 20})
	c := newClient(t, s)
	for i := range 2000 {
		for _, size := range []int{1000, 200 << 10} {
			id := makeObject(t, c, bytesOf(size), byte(i))
			require.NoError(t, c.Delete(background, id, false))
		}
	}
	require.NoError(t, c.Close())
	empty(t, s)
	assert.LessOrEqual(t, s.Statistics().Memories[0].Peak, int64(4<<20))
}

func TestAbortAndBadRequests(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c, other := newClient(t, s), newClient(t, s)
	b, err := c.Create(background, bytesOf(100))
	require.NoError(t, err)
	var unsealed *NotSealedError
	require.ErrorAs(t, other.Delete(background, b.ID(), false), &unsealed)
	require.NoError(t, other.Delete(background, b.ID(), true))
	_, err = b.Seal(background)
	var deleted *DeletedError
	require.ErrorAs(t, err, &deleted)
	_, err = c.Create(background, Description{Type: arrayiface.Uint8, Shape: []int{4}, Metadata: []byte("{")})
	var wrong *ArgumentError
	require.ErrorAs(t, err, &wrong)
	_, err = c.Create(background, Description{Type: arrayiface.Uint8, Shape: []int{4},
		Metadata: bytes.Repeat([]byte(" "), protocol.MostMetadata+1)})
	require.ErrorAs(t, err, &wrong)
	require.ErrorAs(t, other.SetMetadata(background, makeObject(t, c, bytesOf(1), 1), nil), new(*SealedError))
	require.NoError(t, c.Close())
	_, err = c.Get(background, b.ID(), GetOptions{})
	require.ErrorIs(t, err, ErrClosed)
	assert.Zero(t, s.Statistics().Breaches)
}

func TestPutAndNames(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c, other := newClient(t, s), newClient(t, s)
	require.NoError(t, gobuffer.Use(c.runtime.Backends()...))
	source, err := gobuffer.From(backends.Malloc, []float64{1, 2, 3})
	require.NoError(t, err)
	defer source.Close()
	id, err := c.Put(background, source.Array, Description{Allocator: backends.Malloc})
	require.NoError(t, err)

	found := make(chan ID)
	go func() {
		id, err := other.GetName(background, "three", true)
		assert.NoError(t, err)
		found <- id
	}()
	eventually(t, func() bool { return waits(s)[1] == 1 }, func() any { return "nobody waits" })
	require.NoError(t, c.PutName(background, "three", id, false))
	assert.Equal(t, id, <-found)
	second := makeObject(t, c, bytesOf(1), 1)
	var taken *NameTakenError
	require.ErrorAs(t, c.PutName(background, "three", second, false), &taken)
	assert.Equal(t, id, taken.ID)
	info, err := other.Describe(background, id)
	require.NoError(t, err)
	assert.Equal(t, []string{"three"}, info.Names)
	assert.Equal(t, arrayiface.Float64, info.Layout.Type)
	require.NoError(t, c.PutName(background, "three", second, true))
	require.NoError(t, c.Delete(background, second, false))
	_, err = other.GetName(background, "three", false)
	require.ErrorAs(t, err, new(*NotFoundError))
	short, cancel := context.WithTimeout(background, 30*time.Millisecond)
	defer cancel()
	_, err = other.GetName(short, "three", true)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestWaitListAndEvents(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c, other := newClient(t, s), newClient(t, s)
	w, err := other.Watch(background)
	require.NoError(t, err)
	var ids []ID
	var builders []*Builder
	for range 3 {
		b, err := c.Create(background, bytesOf(10))
		require.NoError(t, err)
		ids, builders = append(ids, b.ID()), append(builders, b)
	}
	ready := make(chan []ID)
	go func() {
		got, err := other.Wait(background, append(ids, ids[0]), 2)
		assert.NoError(t, err)
		ready <- got
	}()
	eventually(t, func() bool { return waits(s)[0] == 3 }, func() any { return "nobody waits" })
	for _, i := range []int{2, 0} {
		o, err := builders[i].Seal(background)
		require.NoError(t, err)
		require.NoError(t, o.Release())
	}
	assert.Equal(t, []ID{ids[0], ids[2]}, <-ready)
	list, next, err := other.List(background, ListOptions{Most: 1})
	require.NoError(t, err)
	assert.Equal(t, ids[0], list[0].ID)
	list, next, err = other.List(background, ListOptions{After: next})
	require.NoError(t, err)
	assert.Equal(t, ids[2], list[0].ID)
	assert.Zero(t, next)
	list, _, err = other.List(background, ListOptions{Unsealed: true})
	require.NoError(t, err)
	assert.Len(t, list, 3)

	var kinds []EventKind
	for len(kinds) < 5 {
		events, err := w.Next(background)
		require.NoError(t, err)
		for _, e := range events {
			kinds = append(kinds, e.Kind)
		}
	}
	assert.Equal(t, []EventKind{Created, Created, Created, Sealed, Sealed}, kinds)
	require.NoError(t, w.Close())
	_, err = w.Next(background)
	require.ErrorIs(t, err, ErrClosed)
}

// TestWhatIsBoundGoesWithItsSession also at a server that is started again, where its maker has it.
func TestWhatIsBoundGoesWithItsSession(t *testing.T) {
	path := filepath.Join(folder(t), "store.sock")
	first, err := Listen(ServerOptions{Path: path})
	require.NoError(t, err)
	go func() { _ = first.Serve(background) }()
	c := newClient(t, &served{Server: first})
	what := bytesOf(100_000)
	what.Session = true
	id := makeObject(t, c, what, 1)
	held, err := c.Get(background, id, GetOptions{})
	require.NoError(t, err)
	b := beginObject(t, c, what, 2)
	sealed, err := b.Seal(background)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	second := startServer(t, ServerOptions{Path: path})
	eventually(t, func() bool { there, _, err := c.Exists(background, sealed.ID()); return err == nil && there },
		func() any { return sealed.ID() })
	other := newClient(t, second)
	require.NoError(t, c.Close())
	eventually(t, func() bool {
		there, _, err := other.Exists(background, sealed.ID())
		require.NoError(t, err)
		return !there
	}, func() any { return second.Statistics() })
	require.NoError(t, held.Release())
	require.NoError(t, sealed.Release())
}
