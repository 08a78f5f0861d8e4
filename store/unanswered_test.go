package store

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leaseKept has a client keep a lease of an object that may be evicted, and returns what checks that it has it still,
// by the same session.
func leaseKept(t *testing.T, s *served, c *Client) (check func()) {
	t.Helper()
	what := bytesOf(100)
	what.Evictable = true
	kept, err := c.Get(background, makeObject(t, c, what, 7), GetOptions{})
	require.NoError(t, err)
	socket := c.line.Socket
	return func() {
		t.Helper()
		there, _, err := c.Exists(background, kept.ID())
		require.NoError(t, err)
		assert.True(t, there)
		assert.Same(t, socket, c.line.Socket, "the client has connected anew")
		require.NoError(t, kept.Release())
		require.NoError(t, c.Delete(background, kept.ID(), false))
		require.NoError(t, c.Close())
		empty(t, s)
		assert.Zero(t, s.Statistics().Breaches)
	}
}

// builders begins objects.
func builders(t *testing.T, c *Client, n int) (list []*Builder) {
	t.Helper()
	for range n {
		b, err := c.Create(background, bytesOf(100))
		require.NoError(t, err)
		list = append(list, b)
	}
	return list
}

// TestManyBuildersThatAreGivenUpAtOnce need more than one packet.
func TestManyBuildersThatAreGivenUpAtOnce(t *testing.T) {
	for _, calls := range []bool{false, true} {
		s := startServer(t, ServerOptions{})
		c := newClient(t, s)
		check := leaseKept(t, s, c)
		list := builders(t, c, scaled(4000))
		require.NoError(t, c.take(background)) // so that nothing is told of meanwhile
		for _, b := range list {
			require.NoError(t, b.GiveUp())
		}
		c.give()
		if calls {
			_, err := c.Statistics(background)
			require.NoError(t, err)
		}
		eventually(t, func() bool { return s.Statistics().Objects == 1 }, func() any { return s.Statistics() })
		check()
	}
}

// TestManyBuildersThatAreGivenUpOneByOne have the server told of each, while the client makes no other call.
func TestManyBuildersThatAreGivenUpOneByOne(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	check := leaseKept(t, s, c)
	for _, b := range builders(t, c, scaled(2000)) {
		require.NoError(t, b.GiveUp())
		c.flush()
	}
	check()
}

// TestManyDeletesWithoutAnAnswer are those of what was sealed when nobody waited for it any more.
func TestManyDeletesWithoutAnAnswer(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	check := leaseKept(t, s, c)
	for range scaled(4000) {
		id := makeObject(t, c, bytesOf(100), 1)
		c.mu.Lock()
		c.deletes = append(c.deletes, id)
		c.flushing = true // by the call of flush below
		c.mu.Unlock()
	}
	c.flush()
	eventually(t, func() bool { return s.Statistics().Objects == 1 }, func() any { return s.Statistics() })
	check()
}

// TestManyCallsThatAServerDoesNotAnswer end with their contexts, though their replies still come.
func TestManyCallsThatAServerDoesNotAnswer(t *testing.T) {
	server := startServerProcess(t)
	c, err := Connect(background, server.Args[2], newRuntime(t))
	require.NoError(t, err)
	defer c.Close()
	id := makeObject(t, c, bytesOf(100), 1)
	socket := c.line.Socket
	standStill(t, server.Process)
	for range 300 {
		soon, end := context.WithTimeout(background, time.Millisecond)
		_, _, err := c.Exists(soon, id)
		end()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, server.Process.Signal(syscall.SIGCONT))
	there, _, err := c.Exists(background, id)
	require.NoError(t, err)
	assert.True(t, there)
	assert.Same(t, socket, c.line.Socket)
	assert.True(t, c.line.IsIdle())
}
