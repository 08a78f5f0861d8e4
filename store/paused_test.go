package store

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/internal/deadline"
	"hamr/store/internal/memory"
	"hamr/store/internal/protocol"
	"hamr/store/internal/spill"
)

// TestWhatWasChangedIsToldSo has another server begin as soon as a client has the answer to a change.
func TestWhatWasChangedIsToldSo(t *testing.T) {
	for name, change := range map[string]func(c *Client, id ID) error{
		"metadata":  func(c *Client, id ID) error { return c.SetMetadata(background, id, []byte("2")) },
		"pinned":    func(c *Client, id ID) error { return c.Pin(background, id) },
		"evictable": func(c *Client, id ID) error { return c.SetEvictable(background, id, true) },
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, ServerOptions{})
			c := newClient(t, s)
			b := beginObject(t, c, bytesOf(100), 1)
			s.Lock.Lock()
			changed := make(chan error)
			go func() { changed <- change(c, b.ID()) }()
			time.Sleep(20 * time.Millisecond) // the request is under way
			c.mu.Lock()
			s.Lock.Unlock()
			soon := deadline.Until(background, time.Now().Add(50*time.Millisecond))
			defer soon.End()
			if c.take(soon) == nil { // the next one who asks the server, or tells another one
				info := b.held.info
				assert.True(t, string(info.Metadata) == "2" || info.Pinned || info.Evictable, "told without the change")
				c.give()
			}
			c.mu.Unlock()
			require.NoError(t, <-changed)
			info := b.held.info
			assert.True(t, string(info.Metadata) == "2" || info.Pinned || info.Evictable)
			require.NoError(t, b.Abort(background))
		})
	}
}

// TestADeletionThatIsLearnedWhileRoomIsMade tells a server of an object, and of its deletion while another object is
// spilled for it.
func TestADeletionThatIsLearnedWhileRoomIsMade(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	x := holdMany(t, c, 1, bytesOf(1<<20))[0]
	require.NoError(t, c.take(background)) // so that it tells nothing
	require.NoError(t, s.Close())
	small := startServer(t, ServerOptions{Path: s.Path(), HostLimit: 1 << 20, Spill: folder(t)})
	other := newClient(t, small)
	makeObject(t, other, bytesOf(1<<20), 1)
	spilled := make(chan struct{})
	small.Lock.Lock()
	small.Table.Memory.OpenFile = func(folder string) (*os.File, error) {
		small.Lock.Lock()
		small.Table.NoteOf(protocol.OpDelete, x.ID(), true)
		small.Lock.Unlock()
		close(spilled)
		return spill.Open(folder)
	}
	small.Lock.Unlock()
	c.give()
	rejoin(t, c)
	<-spilled
	there, _, err := other.Exists(background, x.ID())
	require.NoError(t, err)
	assert.False(t, there, "it was deleted")
	assert.Zero(t, small.Statistics().Leases)
	assert.EqualValues(t, 1, small.Statistics().Objects)
	require.NoError(t, x.Release())
}

// TestNothingIsEvictedForWhatDoesNotFit has no descriptor left for memory of which there would not be enough.
func TestNothingIsEvictedForWhatDoesNotFit(t *testing.T) {
	s := startServer(t, ServerOptions{HostLimit: 1 << 20})
	c := newClient(t, s)
	what := bytesOf(protocol.LargeFrom)
	what.Evictable = true
	id := makeObject(t, c, what, 1)
	pretend := func(more int64) {
		s.Lock.Lock()
		defer s.Lock.Unlock()
		s.Table.Memory.Units += more
	}
	few := memory.MostUnits(4096) - 1
	pretend(few)
	_, err := c.Create(background, bytesOf(2<<20))
	full := (*FullError)(nil)
	require.True(t, errors.As(err, &full), err)
	assert.Equal(t, "host", full.Memory)
	there, _, err := c.Exists(background, id)
	require.NoError(t, err)
	assert.True(t, there, "it was evicted for nothing")
	used := s.Statistics().Memories[0].Used
	b, err := c.Create(background, bytesOf(protocol.LargeFrom)) // which fits, and is in need of a descriptor
	require.NoError(t, err)
	there, _, err = c.Exists(background, id)
	require.NoError(t, err)
	assert.False(t, there)
	_, err = c.Create(background, bytesOf(protocol.LargeFrom))
	require.True(t, errors.As(err, &full), err)
	assert.Equal(t, protocol.MemoryDescriptors, full.Memory)
	assert.Equal(t, used, s.Statistics().Memories[0].Used)
	require.NoError(t, b.Abort(background))
	pretend(-few)
	require.NoError(t, c.Close())
	empty(t, s)
}
