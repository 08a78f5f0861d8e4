package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// TestAThreadThatWaitsLeavesItsProcessor waits for a packet that only another goroutine sends, where one of them may
// run at a time.
func TestAThreadThatWaitsLeavesItsProcessor(t *testing.T) {
	spinning(t, false)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	server := startServerProcess(t)
	dialled, err := wire.Dial(server.Args[2])
	require.NoError(t, err)
	defer dialled.Close()
	assert.False(t, dialled.Keeps, "there is one processor alone")

	for _, reason := range []string{"one processor", "patient", "another thread keeps one", "a server is here"} {
		t.Run(reason, func(t *testing.T) {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			require.NoError(t, err)
			defer wire.CloseAll(pair[:])
			// Ends the wait where the sender never runs.
			require.NoError(t, unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}))
			s := &wire.WaitingSocket{Descriptor: pair[0], Control: make([]byte, wire.ControlBytes), Keeps: true}
			switch reason {
			case "one processor":
				s.Keeps = dialled.Keeps
			case "patient":
				s.Patient = true
			case "another thread keeps one":
				require.True(t, wire.Keeping.CompareAndSwap(false, true))
				defer wire.Keeping.Store(false)
			case "a server is here":
				wire.ServersHere.Add(1)
				defer wire.ServersHere.Add(-1)
			}
			sent := make(chan error, 1)
			go func() { sent <- wire.SendTo(pair[1], []byte("packet"), nil, unix.MSG_DONTWAIT) }()
			buffer := make([]byte, 16)
			n, _, err := s.ReceiveSoon(buffer)
			require.NoError(t, err, "nobody else could run")
			require.NoError(t, <-sent)
			assert.Equal(t, "packet", string(buffer[:n]))
		})
	}
}

// TestOnlyOneThreadKeepsItsProcessor begins with a server of another process, and ends with one of this.
func TestOnlyOneThreadKeepsItsProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	assert.Zero(t, wire.ServersHere.Load())
	s := startServer(t, ServerOptions{})
	require.Eventually(t, func() bool { return wire.ServersHere.Load() == 1 }, time.Minute, time.Millisecond)
	c := newClient(t, s)
	assert.True(t, c.line.Socket.Keeps)
	assert.False(t, c.line.Socket.Patient)
	cycles(t, c, 1)
	assert.False(t, wire.Keeping.Load())
	require.NoError(t, s.Close())
	require.Eventually(t, func() bool { return wire.ServersHere.Load() == 0 }, time.Minute, time.Millisecond)
}

// TestWaitingAgainNeedsNoOtherConnection waits in vain, and then for what comes.
func TestWaitingAgainNeedsNoOtherConnection(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	links := func() uint64 {
		return s.Links.Added()
	}
	begun := links()
	for range 50 {
		ctx, cancel := context.WithTimeout(background, time.Millisecond)
		ready, err := c.Wait(ctx, []ID{protocol.NewID()}, 1)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Empty(t, ready)
		ctx, cancel = context.WithTimeout(background, time.Millisecond)
		_, err = c.GetName(ctx, "nobody", true)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	// Now and then the context's end is noticed before the server's answer: then there is a new one.
	assert.Less(t, links()-begun, uint64(50))
	for i := range 10 {
		var o *Object
		name := fmt.Sprint(i)
		done := make(chan error, 1)
		go func() {
			_, err := c.GetName(background, name, true)
			done <- err
		}()
		b, err := c.Create(background, bytesOf(100))
		require.NoError(t, err)
		o, err = b.Seal(background)
		require.NoError(t, err)
		require.NoError(t, c.PutName(background, name, o.ID(), false))
		require.NoError(t, errors.Join(<-done, o.Release()))
	}
}
