package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// forgoing is a client of a device that tells what it was asked for, and a server.
func forgoing(t *testing.T) (*served, *Client, *backendtest.Fake) {
	t.Helper()
	s := startServer(t, ServerOptions{})
	device := backendtest.NewFake(backendtest.FakeOptions{Devices: 1})
	r, err := gobuffer.NewRuntime(device, host.New())
	require.NoError(t, err)
	c, err := Connect(background, s.Path(), r)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return s, c, device
}

// protects counts how often a device was told that nobody writes to some memory.
func protects(device *backendtest.Fake) (n int) {
	for _, call := range device.Calls() {
		if strings.HasPrefix(call, "ProtectShared") {
			n++
		}
	}
	return n
}

func TestWhatIsForgoneIsNotProtected(t *testing.T) {
	for _, size := range []int{0, 100, 100_000} {
		for _, on := range []Description{bytesOf(size), bytesOn(size, 0)} {
			s, c, device := forgoing(t)
			b := beginObject(t, c, on, 5)
			array := b.Array()
			b.Forgo()
			o, err := b.Seal(background)
			require.NoError(t, err)
			assert.Zero(t, protects(device))
			require.Nil(t, o.Array())
			require.Error(t, array.Fill(array), "the maker cannot write any more")
			require.Zero(t, array.Size())
			// The lease has ended, and who gets the object has it anew, though the old mapping is there.
			eventually(t, func() bool { return s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
			got, err := c.Get(background, o.ID(), GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, size > 0, got.Array().ReadOnly())
			assert.Equal(t, slices.Repeat([]byte{5}, size), contents(t, got.Array()))
			require.NoError(t, o.Release())
			require.NoError(t, o.Release())
			assert.Equal(t, slices.Repeat([]byte{5}, size), contents(t, got.Array()))
			require.NoError(t, c.Delete(background, o.ID(), false))
			require.NoError(t, got.Release())
			require.NoError(t, c.Close())
			empty(t, s)
		}
	}
}

func TestWhatWasPutIsNotProtected(t *testing.T) {
	s, c, device := forgoing(t)
	b := beginObject(t, c, bytesOn(100_000, 0), 5)
	id, err := c.Put(background, b.Array(), bytesOn(0, 0))
	require.NoError(t, err)
	require.NoError(t, b.Abort(background))
	assert.Zero(t, protects(device))
	o, err := c.Get(background, id, GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, byte(5), contents(t, o.Array())[99_999])
	require.NoError(t, o.Release())
	require.NoError(t, c.Delete(background, id, false))
	empty(t, s)
}

func TestWhatSomebodyElseHasIsProtectedThoughItIsForgone(t *testing.T) {
	s, c, device := forgoing(t)
	b := beginObject(t, c, bytesOn(100_000, 0), 5)
	beside, err := c.Get(background, b.ID(), GetOptions{Unsafe: true})
	require.NoError(t, err)
	b.Forgo()
	o, err := b.Seal(background)
	require.NoError(t, err)
	assert.Equal(t, 1, protects(device))
	assert.Equal(t, byte(5), contents(t, o.Array())[99_999], "it is as if it were not forgone")
	require.NoError(t, beside.Release())
	require.NoError(t, o.Release())
	require.NoError(t, c.Delete(background, o.ID(), false))
	empty(t, s)
}

// TestAllLeasesOfWhatIsForgoneEnd has had one more, of which the server has not been told the end.
func TestAllLeasesOfWhatIsForgoneEnd(t *testing.T) {
	for _, what := range []Description{bytesOf(0), bytesOf(100_000), bytesOn(100_000, 0)} {
		s, c, _ := forgoing(t)
		b, err := c.Create(background, what)
		require.NoError(t, err)
		beside, err := c.Get(background, b.ID(), GetOptions{Unsafe: true})
		require.NoError(t, err)
		require.NoError(t, beside.Release())
		b.Forgo()
		o, err := b.Seal(background)
		require.NoError(t, err)
		require.NoError(t, o.Release())
		require.NoError(t, c.Delete(background, o.ID(), false))
		empty(t, s)
	}
}

// TestALateReplyIsNotOfWhoHasTheObjectThen has a seal end before its reply comes, while somebody else has the object.
func TestALateReplyIsNotOfWhoHasTheObjectThen(t *testing.T) {
	server := startServerProcess(t)
	c, err := Connect(background, server.Args[2], newRuntime(t))
	require.NoError(t, err)
	defer c.Close()
	b, err := c.Create(background, bytesOf(100_000))
	require.NoError(t, err)
	beside, err := c.Get(background, b.ID(), GetOptions{Unsafe: true})
	require.NoError(t, err)
	b.Forgo()
	standStill(t, server.Process)
	soon, end := brief()
	defer end()
	_, err = b.Seal(soon)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, server.Process.Signal(syscall.SIGCONT))
	_, err = c.Statistics(background)
	require.NoError(t, err)
	c.mu.Lock()
	assert.Same(t, beside.held, c.held[b.ID()])
	c.mu.Unlock()
	require.NoError(t, beside.Release())
	gone(t, c)
}

// TestWhoComesBetween gets the object, unsealed, when the builder was found to be alone and nobody has sealed it yet.
func TestWhoComesBetween(t *testing.T) {
	for _, fails := range []bool{false, true} {
		s, c, device := forgoing(t)
		b := beginObject(t, c, bytesOn(100_000, 0), 5)
		b.Forgo()
		require.NoError(t, b.part())
		require.Zero(t, protects(device))
		beside, err := c.Get(background, b.ID(), GetOptions{Unsafe: true})
		require.NoError(t, err)
		broken := errors.New("broken")
		if fails {
			device.FailAt("ProtectShared", 1, broken)
		}
		o, err := b.sealed(c.call(background, c.sealing(b.ID(), b.noteSealed)))
		assert.Equal(t, 1, protects(device))
		if fails {
			require.ErrorIs(t, err, broken)
			eventually(t, func() bool { return s.Statistics().Objects == 0 }, func() any { return s.Statistics() })
		} else {
			require.NoError(t, err)
			assert.Equal(t, byte(5), contents(t, o.Array())[99_999])
			require.NoError(t, o.Release())
			require.NoError(t, c.Delete(background, o.ID(), false))
		}
		require.NoError(t, beside.Release())
		empty(t, s)
	}
}
