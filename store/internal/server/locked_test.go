package server

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/arrayiface"
	"hamr/store/internal/memory"
	"hamr/store/internal/protocol"
)

// mostForAPacket is how long the thread may compute for one packet. All clients wait meanwhile. The time is the
// thread's own, which other processes do not lengthen. The slowest packets here, of 800 objects that are made at
// once, take a fifth of it.
const mostForAPacket = time.Second

// slower is how many times as long everything takes in a program that is watched.
var slower = time.Duration(1)

// bounded calls f, and fails a test where it computes for too long.
func bounded(t testing.TB, what any, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	f()
	if took := threadTime() - before; took > slower*mostForAPacket {
		require.Fail(t, "a packet stops all clients", "%v of computing: %v", took, what)
	}
}

func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

// holding tells a server of an object without bytes, of which the session has some leases.
func holding(id protocol.ID, leases uint32) []byte {
	var e, layout protocol.Encoder
	at := e.Begin(protocol.OpHold, 0, 1)
	e.ID(id)
	e.U32(leases)
	e.U8(protocol.Nowhere)
	e.ID(protocol.ID{})
	e.U64(0)
	e.U64(0)
	protocol.EncodeLayout(&layout, arrayiface.Uint8, []int{0})
	protocol.EncodeTold(&e, &protocol.Told{Layout: layout.Bytes, Sealed: true})
	e.End(at)
	return e.Bytes
}

// TestNoNumberOfAPacketStopsOthers changes each number of each request to the extremes.
func TestNoNumberOfAPacketStopsOthers(t *testing.T) {
	s, err := newServer(Options{HostLimit: 8 << 20, DeviceLimit: 8 << 20, TableLimit: 1 << 20})
	require.NoError(t, err)
	for _, seed := range seedFrames() {
		for at := protocol.HeaderBytes; at < len(seed); at++ {
			for _, value := range []uint64{0, 1 << 16, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
				packet := append([]byte(nil), seed...)
				if value > 1<<32-1 && at+8 <= len(packet) {
					binary.LittleEndian.PutUint64(packet[at:], value)
				} else if at+4 <= len(packet) {
					binary.LittleEndian.PutUint32(packet[at:], uint32(value))
				}
				fuzzOnce(t, s, 0, holding(protocol.ID{1}, 1), packet)
			}
		}
	}
}

// TestLeasesAreCountedThoughTheyAreMany has more than 32 bits count.
func TestLeasesAreCountedThoughTheyAreMany(t *testing.T) {
	s, err := newServer(Options{})
	require.NoError(t, err)
	id := protocol.ID{1}
	var list []*conversation
	for range 3 {
		c := conversationOf(s)
		require.NoError(t, c.handle(greeting(), nil))
		for range 3 {
			require.NoError(t, c.handle(holding(id, 1<<32-1), nil))
		}
		list = append(list, c)
	}
	s.lock.Lock()
	assert.EqualValues(t, int64(3*protocol.MostLeases), s.table.Objects[id].Leases)
	s.table.Remove(s.table.Objects[id], false, protocol.Deleted)
	s.lock.Unlock()
	for _, c := range list {
		var e protocol.Encoder
		at := e.Begin(protocol.OpRelease, 0, 0)
		e.U32(1)
		e.ID(id)
		e.U32(protocol.MostLeases)
		e.End(at)
		require.NoError(t, c.handle(e.Bytes, nil))
		assert.Empty(t, c.session.Leases)
	}
	empty(t, s)
}

// TestManyWhoWaitForTheSame is 1,400 sessions that all wait for the same 500 objects, of which one is sealed.
func TestManyWhoWaitForTheSame(t *testing.T) {
	s, err := newServer(Options{})
	require.NoError(t, err)
	var e protocol.Encoder
	at := e.Begin(protocol.OpWait, 0, 2)
	e.U64(1<<64 - 1)
	e.U32(1)
	e.U32(500)
	for i := range 500 {
		var id protocol.ID
		binary.LittleEndian.PutUint32(id[:], uint32(i+1))
		e.ID(id)
	}
	e.End(at)
	for range 1400 {
		c := conversationOf(s)
		require.NoError(t, c.handle(greeting(), nil))
		bounded(t, "a wait", func() { require.NoError(t, c.handle(e.Bytes, nil)) })
	}
	c := conversationOf(s)
	require.NoError(t, c.handle(greeting(), nil))
	bounded(t, "a seal", func() { require.NoError(t, c.handle(holding(protocol.ID{1}, 1), nil)) })
	ids, _ := s.table.Watch.Waits()
	assert.Zero(t, ids)
}

// TestDevicesAreLimited has a client make objects on more devices than there can be.
func TestDevicesAreLimited(t *testing.T) {
	s, err := newServer(Options{})
	require.NoError(t, err)
	c := conversationOf(s)
	require.NoError(t, c.handle(greeting(), nil))
	for i := range 4 * memory.MostDevices {
		var e protocol.Encoder
		at := e.Begin(protocol.OpCreate, 0, uint64(i))
		e.U8(0)
		e.ID(protocol.ID{0xff, byte(i), byte(i >> 8)})
		e.U64(64)
		e.U64(64 + uint64(i%2)*(1<<63-65)) // more than can be counted
		protocol.EncodeLayout(&e, arrayiface.Float64, []int{8})
		e.Blob(nil)
		e.End(at)
		require.NoError(t, c.handle(e.Bytes, nil))
	}
	f := s.Statistics()
	assert.LessOrEqual(t, len(f.Memories), memory.MostDevices+1)
	assert.LessOrEqual(t, f.Objects, int64(memory.MostDevices))
	assert.Greater(t, f.Objects, int64(memory.MostDevices/2))
	for _, m := range f.Memories {
		assert.GreaterOrEqual(t, m.Used, int64(0), fmt.Sprint(m))
	}
	s.leave(c, nil)
	empty(t, s)
}

// TestAPacketFullOfRequests has each kind of request fill a packet, on a server with many objects.
func TestAPacketFullOfRequests(t *testing.T) {
	s, err := newServer(Options{HostLimit: 8 << 20, DeviceLimit: 8 << 20})
	require.NoError(t, err)
	c := conversationOf(s)
	require.NoError(t, c.handle(greeting(), nil))
	for i := range 20_000 {
		id := protocol.ID{1}
		binary.LittleEndian.PutUint32(id[1:], uint32(i))
		require.NoError(t, c.handle(holding(id, 1), nil))
	}
	for _, seed := range append(seedFrames(), listOfNothing()) {
		var packet []byte
		for len(packet)+len(seed) <= protocol.MostPacket {
			packet = append(packet, seed...)
		}
		other := conversationOf(s)
		require.NoError(t, other.handle(greeting(), nil))
		bounded(t, seed, func() { err = other.handle(packet, nil) })
		s.leave(other, err)
	}
}

// listOfNothing asks for objects with a name that none has, so that the server looks at all.
func listOfNothing() []byte {
	var e protocol.Encoder
	at := e.Begin(protocol.OpList, 0, 2)
	e.U64(0)
	e.U32(1<<32 - 1)
	e.U8(protocol.ListSealed | protocol.ListUnsealed | protocol.ListNamed)
	e.Text("")
	e.End(at)
	return e.Bytes
}

// TestUndoBesideARequestThatWaits has a client undo what it gave up while the server has a request of it wait.
func TestUndoBesideARequestThatWaits(t *testing.T) {
	s, err := newServer(Options{})
	require.NoError(t, err)
	c := conversationOf(s)
	require.NoError(t, c.handle(greeting(), nil))
	packet := func(operation uint16, build func(*protocol.Encoder)) []byte {
		var e protocol.Encoder
		at := e.Begin(operation, 0, 7)
		build(&e)
		e.End(at)
		return e.Bytes
	}
	forever := func(e *protocol.Encoder) { e.Text("nobody's"); e.U64(1<<64 - 1) }
	require.NoError(t, c.handle(packet(protocol.OpGetName, forever), nil))
	require.True(t, c.session.Watch.IsWaiting())
	require.NoError(t, c.handle(packet(protocol.OpUndo, func(e *protocol.Encoder) { e.U64(7) }), nil))
	require.True(t, c.session.Watch.IsWaiting())
	require.Error(t, c.handle(packet(protocol.OpExists, func(e *protocol.Encoder) { e.ID(protocol.NewID()) }), nil))
	s.leave(c, nil)
}
