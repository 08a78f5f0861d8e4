package store

import (
	"context"
	"encoding/json"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/store/internal/asking"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Twenty of them fill the socket.
func TestLongAnswersThatNobodyWaitsForDoNotCostTheSession(t *testing.T) {
	for _, how := range []string{"list", "describe", "get"} {
		t.Run(how, func(t *testing.T) {
			server := startServerProcess(t)
			c, err := Connect(background, server.Args[2], newRuntime(t))
			require.NoError(t, err)
			defer c.Close()
			what := bytesOf(100)
			what.Metadata, _ = json.Marshal(string(make([]byte, 5000))) // 30 KB: \u0000
			var id ID
			for range 4 {
				id = makeObject(t, c, what, 1)
			}
			b, err := c.Create(background, bytesOf(70_000))
			require.NoError(t, err)
			mine := bytesOf(70_000)
			mine.Session = true
			bound := makeObject(t, c, mine, 1)
			socket := c.line.Socket
			standStill(t, server.Process)
			for range 30 {
				soon, end := context.WithTimeout(background, time.Millisecond)
				switch how {
				case "list":
					_, _, err = c.List(soon, ListOptions{})
				case "describe":
					_, err = c.Describe(soon, id)
				case "get":
					_, err = c.Get(soon, id, GetOptions{})
				}
				end()
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			require.NoError(t, server.Process.Signal(syscall.SIGCONT))
			time.Sleep(300 * time.Millisecond) // the client computes, and the server answers
			_, err = c.Statistics(background)
			assert.NoError(t, err)
			there, _, err := c.Exists(background, bound)
			assert.NoError(t, err)
			assert.True(t, there, "an object of the session, which has not ended")
			o, err := b.Seal(background)
			assert.NoError(t, err)
			if err == nil {
				_ = o.Release()
			}
			_ = c.take(background)
			assert.Same(t, socket, c.line.Socket, "the session was lost")
			c.give()
		})
	}
}

// What the answer would have told of slabs, another one tells.
func TestAnUndoneRequestTellsOfNoSlabs(t *testing.T) {
	s := startServer(t, ServerOptions{})
	maker, reader := newClient(t, s), newClient(t, s)
	x := makeObject(t, maker, bytesOf(100), 1)
	o, err := reader.Get(background, x, GetOptions{})
	require.NoError(t, err)
	require.NoError(t, o.Release())
	require.NoError(t, reader.take(background))
	require.NoError(t, maker.Close()) // the slab is retired
	reader.give()
	eventually(t, func() bool { return s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
	// What the server answers before the slab goes, and is undone after that.
	second := newClient(t, s)
	require.NoError(t, reader.take(background))
	exists := asking.Call{
		Operation: protocol.OpExists,
		Build:     func(e *protocol.Encoder) { e.ID(x) },
		Take:      func(*protocol.Decoder, []int) error { return nil },
	}
	require.NoError(t, reader.line.Send(exists))
	_, err = reader.line.Await(background, exists)
	require.NoError(t, err)
	require.NoError(t, second.Delete(background, x, false)) // the slab goes
	require.True(t, reader.line.Undo(1))
	reader.give()
	for range 5 {
		_, err = reader.Statistics(background)
		require.NoError(t, err)
		time.Sleep(20 * time.Millisecond)
	}
	require.NoError(t, second.Close())
	assert.Zero(t, s.Statistics().Memories[0].Lingering, "the slab lingers for as long as the client lives")
	reader.mu.Lock()
	assert.Empty(t, reader.slabs)
	reader.mu.Unlock()
}

// The server stands still between the greeting and the first answer.
func TestAWatchThatDoesNotBeginLeavesNoConnection(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	before := countFiles(t)
	for range 20 {
		ctx, cancel := context.WithCancel(background)
		released := make(chan struct{})
		go func() {
			for {
				s.Lock.Lock()
				var f Statistics
				s.Table.Figures(&f)
				if f.Sessions >= 2 { // it was greeted
					cancel()
					time.Sleep(50 * time.Millisecond)
					s.Lock.Unlock()
					break
				}
				s.Lock.Unlock()
			}
			close(released)
		}()
		w, err := c.Watch(ctx)
		cancel()
		<-released
		if err == nil {
			_ = w.Close()
		}
	}
	eventually(t, func() bool { return countFiles(t) <= before+2 }, func() any { return countFiles(t) })
}

// The server stands still.
func TestNextEndsWithItsContext(t *testing.T) {
	server := startServerProcess(t)
	c, err := Connect(background, server.Args[2], newRuntime(t))
	require.NoError(t, err)
	defer c.Close()
	w, err := c.Watch(background)
	require.NoError(t, err)
	standStill(t, server.Process)
	defer server.Process.Signal(syscall.SIGCONT)
	soon, end := context.WithTimeout(background, 50*time.Millisecond)
	defer end()
	ended := make(chan error, 1)
	go func() { _, err := w.Next(soon); ended <- err }()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.DeadlineExceeded)
	case <-time.After(5 * time.Second):
		t.Error("Next of 50 ms has not ended within 5 s")
	}
	require.NoError(t, server.Process.Signal(syscall.SIGCONT))
	id := makeObject(t, c, bytesOf(100), 1)
	list, err := w.Next(background)
	require.NoError(t, err)
	assert.Equal(t, id, list[0].ID)
	require.NoError(t, w.Close())
}

// Its descriptor has come again, and is not closed and held to be there.
func TestASlabThatCameBackAsAnotherOne(t *testing.T) {
	spill := folder(t)
	s := startServer(t, ServerOptions{HostLimit: 4 << 20, Spill: spill})
	maker, reader := newClient(t, s), newClient(t, s)
	x, y := makeObject(t, maker, bytesOf(100), 1), makeObject(t, maker, bytesOf(100), 2)
	had, err := reader.Get(background, x, GetOptions{})
	require.NoError(t, err)
	// Its session ends while the server lives, and the slab is spilled before it has told of the object.
	require.NoError(t, reader.take(background))
	_ = reader.line.Lose(context.Canceled)
	eventually(t, func() bool { return s.Statistics().Leases == 0 }, func() any { return s.Statistics() })
	s.Lock.Lock()
	u := s.Table.Objects[x].Unit
	require.NoError(t, s.Table.Memory.Spill(u))
	require.True(t, u.Spilled != nil)
	s.Lock.Unlock()
	reader.give()
	socketOf := func() *wire.WaitingSocket {
		_ = reader.take(background)
		defer reader.give()
		return reader.line.Socket
	}
	_, err = reader.Statistics(background)
	require.NoError(t, err)
	socket := socketOf()
	again, err := reader.Get(background, x, GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, byte(1), contents(t, again.Array())[0])
	other, err := reader.Get(background, y, GetOptions{})
	if assert.NoError(t, err) {
		assert.Equal(t, byte(2), contents(t, other.Array())[0])
		_ = other.Release()
	}
	assert.Same(t, socket, socketOf(), "the session was lost")
	_ = again.Release()
	_ = had.Release()
}

// The server says that it is not sealed, and its maker seals it before it is mapped.
func TestAnObjectIsSealedWhileSomebodyGetsIt(t *testing.T) {
	s := startServer(t, ServerOptions{})
	maker, reader := newClient(t, s), newClient(t, s)
	o, err := beginObject(t, maker, bytesOf(70_000), 3).Seal(background)
	require.NoError(t, err)
	h := o.held
	number, err := unix.Dup(h.mapping.descriptor)
	require.NoError(t, err)
	p := place{where: protocol.OwnMemory, unit: h.mapping.id, size: h.mapping.size, sent: true}
	m, err := reader.mapped(p, backends.UUID{}, []int{number}, true)
	require.NoError(t, err)
	assert.True(t, m.sealed)
	require.NoError(t, m.end())
	require.NoError(t, o.Release())
}

func countFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}
