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
)

// TestAThreadThatWaitsLeavesItsProcessor waits for a packet that only another goroutine sends, where one of them may
// run at a time.
func TestAThreadThatWaitsLeavesItsProcessor(t *testing.T) {
	spinning(t, false)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	server := startServerProcess(t)
	dialled, err := dial(server.Args[2])
	require.NoError(t, err)
	defer dialled.close()
	assert.False(t, dialled.keeps, "there is one processor alone")

	for _, reason := range []string{"one processor", "patient", "another thread keeps one", "a server is here"} {
		t.Run(reason, func(t *testing.T) {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			require.NoError(t, err)
			defer closeAll(pair[:])
			// Ends the wait where the sender never runs.
			require.NoError(t, unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}))
			s := &waitingSocket{descriptor: pair[0], control: make([]byte, controlBytes), keeps: true}
			switch reason {
			case "one processor":
				s.keeps = dialled.keeps
			case "patient":
				s.patient = true
			case "another thread keeps one":
				require.True(t, keeping.CompareAndSwap(false, true))
				defer keeping.Store(false)
			case "a server is here":
				serversHere.Add(1)
				defer serversHere.Add(-1)
			}
			sent := make(chan error, 1)
			go func() { sent <- sendTo(pair[1], []byte("packet"), nil, unix.MSG_DONTWAIT) }()
			buffer := make([]byte, 16)
			n, _, err := s.receiveSoon(buffer)
			require.NoError(t, err, "nobody else could run")
			require.NoError(t, <-sent)
			assert.Equal(t, "packet", string(buffer[:n]))
		})
	}
}

// TestOnlyOneThreadKeepsItsProcessor begins with a server of another process, and ends with one of this.
func TestOnlyOneThreadKeepsItsProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	assert.Zero(t, serversHere.Load())
	s := startServer(t, ServerOptions{})
	require.Eventually(t, func() bool { return serversHere.Load() == 1 }, time.Minute, time.Millisecond)
	c := newClient(t, s)
	assert.True(t, c.socket.keeps)
	assert.False(t, c.socket.patient)
	cycles(t, c, 1)
	assert.False(t, keeping.Load())
	require.NoError(t, s.Close())
	require.Eventually(t, func() bool { return serversHere.Load() == 0 }, time.Minute, time.Millisecond)
}

// TestWaitingAgainNeedsNoOtherConnection waits in vain, and then for what comes.
func TestWaitingAgainNeedsNoOtherConnection(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	links := func() uint64 {
		s.links.mu.Lock()
		defer s.links.mu.Unlock()
		return s.links.last
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
