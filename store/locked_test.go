package store

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
	"hamr/store/internal/protocol"
	"hamr/store/internal/server"
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
func holding(id ID, leases uint32) []byte {
	var e, layout protocol.Encoder
	at := e.Begin(protocol.OpHold, 0, 1)
	e.ID(id)
	e.U32(leases)
	e.U8(protocol.Nowhere)
	e.ID(ID{})
	e.U64(0)
	e.U64(0)
	protocol.EncodeLayout(&layout, arrayiface.Uint8, []int{0})
	protocol.EncodeTold(&e, &protocol.Told{Layout: layout.Bytes, Sealed: true})
	e.End(at)
	return e.Bytes
}

// TestNoNumberOfAPacketStopsOthers changes each number of each request to the extremes.
func TestNoNumberOfAPacketStopsOthers(t *testing.T) {
	s, err := server.NewServer(ServerOptions{HostLimit: 8 << 20, DeviceLimit: 8 << 20, TableLimit: 1 << 20})
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
				fuzzOnce(t, s, 0, holding(ID{1}, 1), packet)
			}
		}
	}
}

// TestLeasesAreCountedThoughTheyAreMany has more than 32 bits count.
func TestLeasesAreCountedThoughTheyAreMany(t *testing.T) {
	s, err := server.NewServer(ServerOptions{})
	require.NoError(t, err)
	id := ID{1}
	var list []*server.Conversation
	for range 3 {
		c := &server.Conversation{Server: s, Transport: silent{}, Hang: func() {}}
		require.NoError(t, c.Handle(greeting(), nil))
		for range 3 {
			require.NoError(t, c.Handle(holding(id, 1<<32-1), nil))
		}
		list = append(list, c)
	}
	s.Mu.Lock()
	assert.EqualValues(t, int64(3*protocol.MostLeases), s.Objects[id].Leases)
	s.Remove(s.Objects[id], false, Deleted)
	s.Mu.Unlock()
	for _, c := range list {
		var e protocol.Encoder
		at := e.Begin(protocol.OpRelease, 0, 0)
		e.U32(1)
		e.ID(id)
		e.U32(protocol.MostLeases)
		e.End(at)
		require.NoError(t, c.Handle(e.Bytes, nil))
		assert.Empty(t, c.Session.Leases)
	}
	empty(t, s)
}

// TestManyWhoWaitForTheSame is 1,400 sessions that all wait for the same 500 objects, of which one is sealed.
func TestManyWhoWaitForTheSame(t *testing.T) {
	s, err := server.NewServer(ServerOptions{})
	require.NoError(t, err)
	var e protocol.Encoder
	at := e.Begin(protocol.OpWait, 0, 2)
	e.U64(forever)
	e.U32(1)
	e.U32(500)
	for i := range 500 {
		var id ID
		binary.LittleEndian.PutUint32(id[:], uint32(i+1))
		e.ID(id)
	}
	e.End(at)
	for range 1400 {
		c := &server.Conversation{Server: s, Transport: silent{}, Hang: func() {}}
		require.NoError(t, c.Handle(greeting(), nil))
		bounded(t, "a wait", func() { require.NoError(t, c.Handle(e.Bytes, nil)) })
	}
	c := &server.Conversation{Server: s, Transport: silent{}, Hang: func() {}}
	require.NoError(t, c.Handle(greeting(), nil))
	bounded(t, "a seal", func() { require.NoError(t, c.Handle(holding(ID{1}, 1), nil)) })
	assert.Empty(t, s.WaitingIDs)
}

// TestDevicesAreLimited has a client make objects on more devices than there can be.
func TestDevicesAreLimited(t *testing.T) {
	s, err := server.NewServer(ServerOptions{})
	require.NoError(t, err)
	c := &server.Conversation{Server: s, Transport: silent{}, Hang: func() {}}
	require.NoError(t, c.Handle(greeting(), nil))
	for i := range 4 * server.MostDevices {
		var e protocol.Encoder
		at := e.Begin(protocol.OpCreate, 0, uint64(i))
		e.U8(0)
		e.ID(ID{0xff, byte(i), byte(i >> 8)})
		e.U64(64)
		e.U64(64 + uint64(i%2)*(1<<63-65)) // more than can be counted
		protocol.EncodeLayout(&e, arrayiface.Float64, []int{8})
		e.Blob(nil)
		e.End(at)
		require.NoError(t, c.Handle(e.Bytes, nil))
	}
	f := s.Statistics()
	assert.LessOrEqual(t, len(f.Memories), server.MostDevices+1)
	assert.LessOrEqual(t, f.Objects, int64(server.MostDevices))
	assert.Greater(t, f.Objects, int64(server.MostDevices/2))
	for _, m := range f.Memories {
		assert.GreaterOrEqual(t, m.Used, int64(0), fmt.Sprint(m))
	}
	s.Leave(c, nil)
	empty(t, s)
}

// TestAPacketFullOfRequests has each kind of request fill a packet, on a server with many objects.
func TestAPacketFullOfRequests(t *testing.T) {
	s, err := server.NewServer(ServerOptions{HostLimit: 8 << 20, DeviceLimit: 8 << 20})
	require.NoError(t, err)
	c := &server.Conversation{Server: s, Transport: silent{}, Hang: func() {}}
	require.NoError(t, c.Handle(greeting(), nil))
	for i := range 20_000 {
		id := ID{1}
		binary.LittleEndian.PutUint32(id[1:], uint32(i))
		require.NoError(t, c.Handle(holding(id, 1), nil))
	}
	for _, seed := range append(seedFrames(), listOfNothing()) {
		var packet []byte
		for len(packet)+len(seed) <= protocol.MostPacket {
			packet = append(packet, seed...)
		}
		other := &server.Conversation{Server: s, Transport: silent{}, Hang: func() {}}
		require.NoError(t, other.Handle(greeting(), nil))
		bounded(t, seed, func() { err = other.Handle(packet, nil) })
		s.Leave(other, err)
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
