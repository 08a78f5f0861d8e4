package store

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/internal/deadline"
	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
)

// restart has another server of a path follow one, in this process.
func restart(t *testing.T, s *served) *served {
	t.Helper()
	require.NoError(t, s.Close())
	return startServer(t, ServerOptions{Path: s.Path()})
}

// rejoin has a client find the server that there is now, and tell it all.
func rejoin(t *testing.T, c *Client) {
	t.Helper()
	var err error
	eventually(t, func() bool { _, err = c.Statistics(background); return err == nil }, func() any { return err })
}

// holdMany makes objects, and keeps a lease of each.
func holdMany(t *testing.T, c *Client, n int, whats ...Description) (objects []*Object) {
	t.Helper()
	for i := range n {
		o, err := beginObject(t, c, whats[i%len(whats)], byte(i)).Seal(background)
		require.NoError(t, err)
		objects = append(objects, o)
	}
	return objects
}

func releaseAll(t *testing.T, objects []*Object) {
	t.Helper()
	for _, o := range objects {
		require.NoError(t, o.Release())
	}
}

// TestTheWholeIsToldThoughCallsEnd has the calls that find another server end before all is told.
func TestTheWholeIsToldThoughCallsEnd(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	objects := holdMany(t, c, 3000, bytesOf(100), bytesOf(5000), bytesOf(0))
	again := restart(t, s)
	eventually(t, func() bool {
		soon := deadline.Until(background, time.Now().Add(2*time.Millisecond))
		defer soon.End()
		there, _, err := c.Exists(soon, objects[2999].ID())
		return err == nil && there
	}, func() any { return again.Statistics() })
	assert.Equal(t, int64(3000), again.Statistics().Objects)
	releaseAll(t, objects)
}

// TestNoBytesOnADevice has a server be told of an object of a device's that has no bytes.
func TestNoBytesOnADevice(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newDeviceClient(t, s, 1)
	objects := holdMany(t, c, 8, bytesOn(0, 0), bytesOn(100, 0))
	again := restart(t, s)
	rejoin(t, c)
	for _, o := range objects {
		there, sealed, err := c.Exists(background, o.ID())
		require.NoError(t, err)
		assert.True(t, there && sealed)
	}
	assert.Zero(t, again.Statistics().Breaches)
	releaseAll(t, objects)
}

// TestOneObjectThatIsABreach has all others be told when a server takes one for a breach of the protocol.
func TestOneObjectThatIsABreach(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	objects := holdMany(t, c, 8, bytesOf(0), bytesOf(100), bytesOf(100_000))
	c.mu.Lock()
	objects[4].held.info.Bytes++
	c.mu.Unlock()
	again := restart(t, s)
	rejoin(t, c)
	for i, o := range objects {
		there, _, err := c.Exists(background, o.ID())
		require.NoError(t, err)
		assert.Equal(t, i != 4, there)
	}
	assert.Equal(t, int64(1), again.Statistics().Breaches)
	releaseAll(t, objects)
}

// TestAClientTellsWithoutACall has a client that makes no call tell another server what it has.
func TestAClientTellsWithoutACall(t *testing.T) {
	path := filepath.Join(folder(t), "store.sock")
	server := startRun(t, "", "serve", path)
	var c *Client
	eventually(t, func() (ok bool) { var err error; c, err = Connect(background, path, newRuntime(t)); return err == nil },
		func() any { return nil })
	defer c.Close()
	objects := holdMany(t, c, 20, bytesOf(100), bytesOf(100_000))
	require.NoError(t, server.Process.Kill())
	require.True(t, killed(server.wait(t)))
	again := startServer(t, ServerOptions{Path: path})
	eventually(t, func() bool { return again.Statistics().Objects == 20 }, func() any { return again.Statistics() })
	releaseAll(t, objects)
}

// TestWhatThereWasNoRoomForIsToldLater has another server take what was refused when there is room.
func TestWhatThereWasNoRoomForIsToldLater(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	objects := holdMany(t, c, 4, bytesOf(1<<20))
	require.NoError(t, c.take(background)) // so that it tells nothing
	require.NoError(t, s.Close())
	small := startServer(t, ServerOptions{Path: s.Path(), HostLimit: 4 << 20})
	in, err := newClient(t, small).Create(background, bytesOf(2<<20))
	c.give()
	require.NoError(t, err)
	eventually(t, func() bool { return small.Statistics().Objects == 3 }, func() any { return small.Statistics() })
	expects := func() uint64 {
		small.Lock.Lock()
		defer small.Lock.Unlock()
		return small.Table.Book.Expects
	}
	until := expects()
	eventually(t, func() bool { return book.Clock() > until }, func() any { return until })
	asked := small.Statistics().Requests
	eventually(t, func() bool { return small.Statistics().Requests > asked+3 }, func() any { return small.Statistics() })
	assert.Equal(t, until, expects(), "nobody waits for what there is no room for")
	var full *FullError
	for _, o := range objects {
		got, err := c.Get(background, o.ID(), GetOptions{})
		if err == nil {
			require.NoError(t, got.Release())
		} else {
			require.ErrorAs(t, err, &full)
		}
	}
	require.NotNil(t, full)
	require.NoError(t, in.Abort(background))
	eventually(t, func() bool { return small.Statistics().Objects == 4 }, func() any { return small.Statistics() })
	releaseAll(t, objects)
}

// TestWhatOthersHaveIsWaitedFor has a client ask for what another one has not told a new server of yet.
func TestWhatOthersHaveIsWaitedFor(t *testing.T) {
	s := startServer(t, ServerOptions{})
	slow, quick := newClient(t, s), newClient(t, s)
	x, y := holdMany(t, slow, 1, bytesOf(100))[0], holdMany(t, quick, 1, bytesOf(100))[0]
	require.NoError(t, slow.PutName(background, "x", x.ID(), false))
	require.NoError(t, slow.take(background)) // so that it tells nothing
	give := sync.OnceFunc(slow.give)
	defer give()
	restart(t, s)
	rejoin(t, quick)
	soon := deadline.Until(background, time.Now().Add(30*time.Millisecond))
	defer soon.End()
	_, err := quick.Get(soon, x.ID(), GetOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	soon = deadline.Until(background, time.Now().Add(30*time.Millisecond))
	defer soon.End()
	require.ErrorIs(t, quick.PutName(soon, "x", y.ID(), false), context.DeadlineExceeded)
	got := make(chan error, 4)
	for _, ask := range []func() error{
		func() error {
			o, err := quick.Get(background, x.ID(), GetOptions{})
			return errors.Join(err, o.Release())
		},
		func() error { _, err := quick.GetName(background, "x", false); return err },
		func() error { return quick.Pin(background, x.ID()) },
		func() error {
			there, _, err := quick.Exists(background, x.ID())
			if !there {
				err = errors.Join(err, &NotFoundError{})
			}
			return err
		},
	} {
		go func() { got <- ask() }()
	}
	give()
	for range 4 {
		require.NoError(t, <-got)
	}
	require.ErrorAs(t, quick.Pin(background, protocol.NewID()), new(*NotFoundError), "it does not wait for ever")
	releaseAll(t, []*Object{x, y})
}

// TestABuilderThatAnotherServerDoesNotKnow is lost with the server, and not said to be an object that is not there.
func TestABuilderThatAnotherServerDoesNotKnow(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	b := beginObject(t, c, bytesOf(100_000), 1)
	c.mu.Lock()
	delete(c.held, b.ID())
	c.mu.Unlock()
	restart(t, s)
	rejoin(t, c)
	_, err := b.Seal(background)
	require.ErrorAs(t, err, new(*LostError))
}
