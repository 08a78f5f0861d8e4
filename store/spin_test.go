package store

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// spinning has clients ask for replies before they sleep, however many processors there are, or not.
func spinning(t *testing.T, on bool) {
	was := wire.Spins
	wire.Spins = on
	t.Cleanup(func() { wire.Spins = was })
}

// inTurn looks at a client's connection, which another goroutine takes away when the server has ended.
func inTurn(t *testing.T, c *Client, look func()) {
	require.NoError(t, c.take(background))
	defer c.give()
	look()
}

// TestRepliesAreAskedForOrWaitedFor has requests answered, and ended by their context, either way.
func TestRepliesAreAskedForOrWaitedFor(t *testing.T) {
	var skips int
	for _, on := range []bool{true, false} {
		spinning(t, on)
		server := startServerProcess(t)
		c, err := Connect(background, server.Args[2], newRuntime(t))
		require.NoError(t, err)
		cycles(t, c, 20)
		standStill(t, server.Process)
		inTurn(t, c, func() { c.line.Socket.Skips, c.line.Socket.Skipped = 0, 0 })
		ctx, cancel := context.WithTimeout(background, 30*time.Millisecond)
		_, _, err = c.Exists(ctx, protocol.NewID())
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		inTurn(t, c, func() { skips = c.line.Socket.Skips })
		assert.Equal(t, on, skips > 0, "who asked in vain sleeps at once for a while")
		require.NoError(t, server.Process.Signal(syscall.SIGCONT))
		cycles(t, c, 20)
		if on {
			asks := func() (again bool) {
				cycles(t, c, 1)
				inTurn(t, c, func() { again = c.line.Socket.Skipped == 0 })
				return again
			}
			require.Eventually(t, asks, time.Minute, time.Millisecond, "it asks again")
		}
		require.NoError(t, server.Process.Kill())
		_, _, err = c.Exists(background, protocol.NewID())
		require.ErrorAs(t, err, new(*LostError))
		require.NoError(t, c.Close())
	}
}

// brief is a context that has ended when a call waits for the server.
func brief() (context.Context, context.CancelFunc) {
	return context.WithTimeout(background, 30*time.Millisecond)
}

// TestASealThatIsNotOverGoesOn begins to seal while the server stands still.
func TestASealThatIsNotOverGoesOn(t *testing.T) {
	server := startServerProcess(t)
	for _, size := range []int{0, 100, 100_000} {
		c, err := Connect(background, server.Args[2], newRuntime(t))
		require.NoError(t, err)
		b, err := c.Create(background, bytesOf(size))
		require.NoError(t, err)
		require.True(t, b.Prompt())
		fill(t, b.Array(), 3)
		standStill(t, server.Process)
		soon, end := brief()
		o, rest, err := b.SealSoon(soon)
		end()
		require.NoError(t, err)
		require.NotNil(t, rest, size)
		require.Nil(t, o)
		_, err = b.Seal(background)
		require.ErrorIs(t, err, ErrClosed, "it is being sealed")
		soon, end = brief()
		_, _, err = c.Exists(soon, b.ID())
		end()
		require.ErrorIs(t, err, context.DeadlineExceeded, "the seal has the turn")
		require.NoError(t, server.Process.Signal(syscall.SIGCONT))
		o, err = rest(background)
		require.NoError(t, err)
		there, sealed, err := c.Exists(background, b.ID())
		require.NoError(t, err)
		assert.True(t, there && sealed)
		assert.True(t, o.Info().Sealed)
		require.NoError(t, o.Release())
		require.NoError(t, c.Close())
	}
}

// TestASealThatIsGivenUpIsUndone ends the rest of one, too.
func TestASealThatIsGivenUpIsUndone(t *testing.T) {
	server := startServerProcess(t)
	c, err := Connect(background, server.Args[2], newRuntime(t))
	require.NoError(t, err)
	defer c.Close()
	b, err := c.Create(background, bytesOf(100_000))
	require.NoError(t, err)
	standStill(t, server.Process)
	soon, end := brief()
	defer end()
	_, rest, err := b.SealSoon(soon)
	require.NoError(t, err)
	require.NotNil(t, rest)
	_, err = rest(soon)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, server.Process.Signal(syscall.SIGCONT))
	gone(t, c)
}

// TestASealOfWhichTheServerIsGone has nothing to send to, and another one to find.
func TestASealOfWhichTheServerIsGone(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	b, err := c.Create(background, bytesOf(100_000))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, _, err = c.Exists(background, b.ID())
	require.ErrorAs(t, err, new(*LostError))
	_, rest, err := b.SealSoon(background)
	require.NoError(t, err)
	require.NotNil(t, rest)
	_, err = rest(background)
	require.ErrorAs(t, err, new(*LostError))
}

// TestASealBesideOneThatWaits begins none while another request has the turn.
func TestASealBesideOneThatWaits(t *testing.T) {
	c := newClient(t, startServer(t, ServerOptions{}))
	b, err := c.Create(background, bytesOf(100))
	require.NoError(t, err)
	require.NoError(t, c.take(background))
	soon, end := brief()
	defer end()
	_, rest, err := b.SealSoon(soon)
	require.NoError(t, err)
	require.NotNil(t, rest)
	c.give()
	o, err := rest(background)
	require.NoError(t, err)
	require.NoError(t, o.Release())
}
