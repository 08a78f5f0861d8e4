package server

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/links"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// linked is a server's connection, and its other end; process stands for that of the peer.
func linked(t *testing.T, s *Server, process int) (k *link, other *wire.WaitingSocket) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	k = &link{Socket: ends[0], Process: process}
	k.Conversation = &conversation{server: s, transport: k, hang: k.Hang}
	require.NoError(t, s.links.Add(k, 1<<20))
	return k, &wire.WaitingSocket{Descriptor: ends[1], Control: make([]byte, wire.ControlBytes)}
}

// answering is a server without a socket that answers what it is linked to.
func answering(t *testing.T) *Server {
	t.Helper()
	s, err := newServer(Options{})
	require.NoError(t, err)
	s.links, err = links.New[conversation]()
	require.NoError(t, err)
	s.lead()
	t.Cleanup(func() {
		s.links.Finish()
		s.wait()
		require.NoError(t, s.links.Poll.Close())
	})
	return s
}

// readable is a descriptor as of a process, which has ended or lives.
func readable(t *testing.T, is uint) int {
	t.Helper()
	descriptor, err := unix.Eventfd(is, unix.EFD_CLOEXEC)
	require.NoError(t, err)
	return descriptor
}

func TestTheConnectionOfADeadProcessEnds(t *testing.T) {
	s := answering(t)
	_, living := linked(t, s, readable(t, 0))
	defer living.Close()
	_, dead := linked(t, s, readable(t, 1))
	defer dead.Close()
	eventually(t, func() bool { return s.links.Count() == 1 }, func() any { return s.links.Count() })
	require.ErrorIs(t, dead.Send([]byte{0}, nil), unix.EPIPE)
	require.NoError(t, living.Send(greeting(), nil))
}

// A process ends while its connection does, and the next connection's descriptor has the same number.
func TestADeathIsNobodyElses(t *testing.T) {
	s := answering(t)
	for range scaled(5_000) {
		_, gone := linked(t, s, readable(t, 1))
		gone.Close()
		_, next := linked(t, s, readable(t, 0))
		require.NoError(t, next.Send(greeting(), nil))
		n, _, err := next.Receive(make([]byte, 1024))
		require.NoError(t, err)
		require.Positive(t, n)
		next.Close()
	}
	eventually(t, func() bool { return s.links.Count() == 0 }, func() any { return s.links.Count() })
}

// TestADeathIsToldOfALinkThatAnotherOneEnds has the numbers of its descriptors be others' meanwhile.
func TestADeathIsToldOfALinkThatAnotherOneEnds(t *testing.T) {
	s := answering(t)
	k, other := linked(t, s, readable(t, 0))
	defer other.Close()
	l := &leader{server: s}
	l.end(k, nil)
	var later []*wire.WaitingSocket
	for range 2 {
		_, next := linked(t, s, -1)
		defer next.Close()
		later = append(later, next)
	}
	l.hear(k, true)
	soon, end := context.WithTimeout(context.Background(), 10*time.Second)
	defer end()
	for _, each := range later {
		each.Stopped = soon.Err
		require.NoError(t, each.Send(greeting(), nil))
		n, _, err := each.Receive(make([]byte, 1024))
		require.NoError(t, err)
		require.Positive(t, n)
	}
}

// TestAClosedConnectionIsNoticed though another process has the server's descriptor of it.
func TestAClosedConnectionIsNoticed(t *testing.T) {
	s := answering(t)
	k, other := linked(t, s, -1)
	defer other.Close()
	kept, err := unix.Dup(k.Socket)
	require.NoError(t, err)
	defer unix.Close(kept)
	other.Stopped = func() error { return errors.New("nobody has noticed") }
	(&leader{server: s}).end(k, nil)
	_, _, err = other.Receive(make([]byte, 1024))
	require.ErrorIs(t, err, io.EOF)
}

// TestWhatFollowsASealIsLearnedByItself has the leader note each seal, after which it asks for requests for a while
// although it did so in vain after other requests.
func TestWhatFollowsASealIsLearnedByItself(t *testing.T) {
	s, err := newServer(Options{})
	require.NoError(t, err)
	s.links, err = links.New[conversation]()
	require.NoError(t, err)
	defer s.links.Poll.Close()
	k, other := linked(t, s, -1)
	defer other.Close()
	l := s.newLeader()
	tell := func(packet []byte) {
		require.NoError(t, other.Send(packet, nil))
		l.hear(k, false)
		n, _, err := other.Receive(make([]byte, 1024))
		require.NoError(t, err)
		require.Positive(t, n)
	}
	tell(greeting())
	assert.False(t, l.sealed)
	var e protocol.Encoder
	at := e.Begin(protocol.OpCreate, 0, 2)
	e.Bytes = append(e.Bytes, seedFrames()[0][protocol.HeaderBytes:]...)
	e.End(at)
	tell(e.Bytes)
	assert.False(t, l.sealed)
	var id protocol.ID
	for its := range s.table.Objects {
		id = its
	}
	e.Bytes = e.Bytes[:0]
	at = e.Begin(protocol.OpSeal, 0, 3)
	e.ID(id)
	e.End(at)
	tell(e.Bytes)
	assert.True(t, l.sealed)
	l.end(k, nil)
}

// TestAConnectionDoesNotKeepItsLastPacket has the buffer go that the packet lay in, as that of a leader which stepped
// aside, though the connection stays.
func TestAConnectionDoesNotKeepItsLastPacket(t *testing.T) {
	s, err := newServer(Options{})
	require.NoError(t, err)
	c := conversationOf(s)
	var freed atomic.Bool
	func() {
		buffer := new([protocol.MostPacket]byte)
		runtime.AddCleanup(buffer, func(int) { freed.Store(true) }, 0)
		require.NoError(t, c.handle(buffer[:copy(buffer[:], greeting())], nil))
	}()
	eventually(t, func() bool { runtime.GC(); return freed.Load() }, func() any { return "the packet is kept" })
	s.leave(c, nil)
}
