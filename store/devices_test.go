package store

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
	"hamr/store/internal/wire"
)

// newDeviceClient is one whose runtime has devices of its own making, with the same UUIDs as others'.
func newDeviceClient(t *testing.T, s *served, devices int) *Client {
	t.Helper()
	r, err := gobuffer.NewRuntime(backendtest.NewFake(backendtest.FakeOptions{Devices: devices}), host.New())
	require.NoError(t, err)
	c, err := Connect(background, s.Path(), r)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func bytesOn(n, device int) Description {
	return Description{Type: arrayiface.Uint8, Shape: []int{n}, Allocator: backends.CUDA, Device: device}
}

func TestObjectsOnDevices(t *testing.T) {
	s := startServer(t, ServerOptions{DeviceLimit: 256 << 10})
	maker, other := newDeviceClient(t, s, 2), newDeviceClient(t, s, 2)
	b, err := maker.Create(background, bytesOn(1000, 1))
	require.NoError(t, err)
	assert.Equal(t, 1, b.Array().Owner())
	fill(t, b.Array(), 6)
	require.NoError(t, b.Array().Synchronize()) // two processes' streams know nothing of each other
	shared, err := other.Get(background, b.ID(), GetOptions{Unsafe: true})
	require.NoError(t, err)
	fill(t, shared.Array(), 7)
	require.NoError(t, shared.Array().Synchronize())
	require.NoError(t, shared.Release())
	o, err := b.Seal(background)
	require.NoError(t, err)
	id := o.ID()
	assert.True(t, o.Array().ReadOnly())
	require.NoError(t, o.Release())
	require.NoError(t, maker.Close())

	got, err := other.Get(background, id, GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, backends.DeviceOnly, got.Array().Allocator().Kind())
	assert.Equal(t, 1, got.Array().Owner())
	assert.Equal(t, byte(7), contents(t, got.Array())[999])
	assert.True(t, got.Array().ReadOnly())
	assert.NotZero(t, got.Info().Device)
	memory := s.Statistics().Memories[1]
	assert.Equal(t, got.Info().Device, memory.Device)
	assert.EqualValues(t, 64<<10, memory.Used)
	require.NoError(t, other.Delete(background, id, false))
	assert.EqualValues(t, 64<<10, s.Statistics().Memories[1].Used, "it is leased")
	require.NoError(t, got.Release())
	require.NoError(t, other.Close())
	empty(t, s)
}

func TestADevicesLimit(t *testing.T) {
	s := startServer(t, ServerOptions{DeviceLimit: 128 << 10, Spill: folder(t)})
	c := newDeviceClient(t, s, 2)
	what := bytesOn(64<<10, 0)
	what.Evictable = true
	first, second := makeObject(t, c, what, 1), makeObject(t, c, what, 2)
	third := makeObject(t, c, what, 3)
	for id, want := range map[ID]bool{first: false, second: true, third: true} {
		there, _, err := c.Exists(background, id)
		require.NoError(t, err)
		assert.Equal(t, want, there)
	}
	makeObject(t, c, bytesOn(128<<10, 1), 4)
	_, err := c.Create(background, bytesOn(1, 1))
	var full *FullError
	require.ErrorAs(t, err, &full)
	assert.Len(t, full.Memory, 36, "the device's UUID")
}

func TestObjectsOfDevicesAreSpilledAndComeBack(t *testing.T) {
	const size = 100_000 // two of 64 KiB's pages
	fake := backendtest.NewFake(backendtest.FakeOptions{Devices: 2})
	r, err := gobuffer.NewRuntime(fake, host.New())
	require.NoError(t, err)
	s := startServer(t, ServerOptions{DeviceLimit: 256 << 10, Spill: folder(t), SpillDevices: r})
	maker, reader := newDeviceClient(t, s, 2), newDeviceClient(t, s, 2)
	var ids []ID
	for i := range 12 {
		ids = append(ids, makeObject(t, maker, bytesOn(size, i%2), byte(i)))
	}
	f := s.Statistics()
	assert.Zero(t, f.Evicted)
	assert.EqualValues(t, 8*(128<<10), f.Spilled)
	for _, memory := range f.Memories[1:] {
		assert.EqualValues(t, 256<<10, memory.Peak)
	}
	leased, err := reader.Get(background, ids[0], GetOptions{})
	require.NoError(t, err)
	for range 2 {
		for i, id := range ids {
			o, err := reader.Get(background, id, GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, []any{backends.DeviceOnly, i % 2, true},
				[]any{o.Array().Allocator().Kind(), o.Array().Owner(), o.Array().ReadOnly()})
			assert.Equal(t, bytes.Repeat([]byte{byte(i)}, size), contents(t, o.Array()))
			require.NoError(t, o.Release())
		}
	}
	assert.Equal(t, byte(0), contents(t, leased.Array())[0])
	require.NoError(t, leased.Release())
	assert.Zero(t, f.Evicted)
	assert.Positive(t, s.Statistics().Restored)
	require.NoError(t, maker.Pin(background, ids[0]))
	for _, id := range ids {
		require.NoError(t, maker.Delete(background, id, false))
	}
	require.NoError(t, maker.Close())
	require.NoError(t, reader.Close())
	empty(t, s)
	assert.Zero(t, s.Statistics().Spilled)
	allocations, mapped := fake.Live()
	assert.Zero(t, allocations+mapped, "the server has nothing mapped")
	assert.Empty(t, fake.Violations())
}

func TestWhatCannotBeSpilledIsPassedOver(t *testing.T) {
	s := startServer(t, ServerOptions{DeviceLimit: 256 << 10, Spill: folder(t), SpillDevices: newRuntime(t)})
	c := newClient(t, s)
	what := bytesOn(64<<10, 0)
	bad := makeObject(t, c, what, 1)
	file, err := os.CreateTemp(t.TempDir(), "no memory")
	require.NoError(t, err)
	number, err := unix.Dup(int(file.Fd()))
	require.NoError(t, err)
	require.NoError(t, file.Close())
	s.Lock.Lock() // as of a client that has lied
	u := s.Table.Objects[bad].Unit
	u.Descriptor.Release()
	u.Descriptor = wire.NewDescriptor(number)
	s.Lock.Unlock()
	var ids []ID
	for i := range 8 {
		ids = append(ids, makeObject(t, c, what, byte(i)))
	}
	for i, id := range ids {
		o, err := c.Get(background, id, GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, byte(i), contents(t, o.Array())[0])
		require.NoError(t, o.Release())
	}
	_, err = c.Create(background, bytesOn(256<<10, 0))
	require.ErrorAs(t, err, new(*SystemError))
	assert.Len(t, ids, int(s.Statistics().Objects)-1, "nothing went in vain")
	require.NoError(t, c.SetEvictable(background, bad, true))
	_ = makeObject(t, c, bytesOn(256<<10, 0), 9)
	there, _, err := c.Exists(background, bad)
	require.NoError(t, err)
	assert.False(t, there)
}

func TestAChangedSpillFileOfADevicesIsFound(t *testing.T) {
	s := startServer(t, ServerOptions{DeviceLimit: 64 << 10, Spill: folder(t), SpillDevices: newRuntime(t)})
	c := newClient(t, s)
	id := makeObject(t, c, bytesOn(1000, 0), 1)
	makeObject(t, c, bytesOn(1000, 0), 2)
	file := spilledFile(t, s)
	_, err := unix.Pwrite(file, []byte{9}, 500)
	require.NoError(t, err)
	_, err = c.Get(background, id, GetOptions{})
	var failed *SystemError
	require.ErrorAs(t, err, &failed)
	assert.Contains(t, failed.Problem, "checksum")
	err = unix.Ftruncate(file, 999)
	require.NoError(t, err)
	_, err = c.Get(background, id, GetOptions{})
	require.ErrorAs(t, err, &failed)
	assert.Contains(t, failed.Problem, "of 1000")
}

func TestAServerThatCannotSpillDevices(t *testing.T) {
	_, err := Listen(ServerOptions{Path: folder(t) + "/s.sock", SpillDevices: newRuntime(t)})
	require.ErrorAs(t, err, new(*ArgumentError))
	onHost, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	_, err = Listen(ServerOptions{Path: folder(t) + "/s.sock", Spill: folder(t), SpillDevices: newRuntime(t)})
	require.ErrorAs(t, err, new(*ArgumentError), "there is no limit")
	_, err = Listen(ServerOptions{Path: folder(t) + "/s.sock", DeviceLimit: 1, Spill: folder(t), SpillDevices: onHost})
	require.ErrorIs(t, err, backends.ErrUnavailable)
	// Of a device that it does not know it evicts.
	s := startServer(t, ServerOptions{DeviceLimit: 64 << 10, Spill: folder(t), SpillDevices: newRuntime(t)})
	c := newDeviceClient(t, s, 2)
	what := bytesOn(1000, 1)
	what.Evictable = true
	id := makeObject(t, c, what, 1)
	makeObject(t, c, what, 1)
	there, _, err := c.Exists(background, id)
	require.NoError(t, err)
	assert.False(t, there)
}

func TestAProcessWithoutTheDevice(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c, other := newDeviceClient(t, s, 2), newDeviceClient(t, s, 1)
	id := makeObject(t, c, bytesOn(100, 1), 1)
	for range 2 {
		_, err := other.Get(background, id, GetOptions{})
		require.ErrorIs(t, err, backends.ErrUnavailable)
	}
	require.NoError(t, c.Delete(background, id, false))
	require.NoError(t, c.Close())
	empty(t, s)
}

// TestPutMovesWhereItIsAskedTo copies between the host and a device.
func TestPutMovesWhereItIsAskedTo(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newDeviceClient(t, s, 1)
	for _, size := range []int{100, 1 << 20} {
		for _, from := range []backends.Allocator{backends.Malloc, backends.CUDA} {
			for _, to := range []backends.Allocator{backends.Malloc, backends.CUDA} {
				source, err := c.runtime.NewArray(arrayiface.Uint8, []int{size}, gobuffer.Options{Allocator: from})
				require.NoError(t, err)
				fill(t, source, 9)
				id, err := c.Put(background, source, Description{Allocator: to})
				require.NoError(t, err)
				got, err := c.Get(background, id, GetOptions{})
				require.NoError(t, err)
				assert.Equal(t, to == backends.Malloc, got.Array().Accessible(backends.SpaceHost))
				assert.Equal(t, byte(9), contents(t, got.Array())[size-1])
				require.NoError(t, got.Release())
				require.NoError(t, c.Delete(background, id, false))
				require.NoError(t, source.Close())
			}
		}
	}
	require.NoError(t, c.Close())
	empty(t, s)
}

// TestAnotherServerLearnsOfADevicesMemory tells a server that starts anew of what is mapped.
func TestAnotherServerLearnsOfADevicesMemory(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newDeviceClient(t, s, 1)
	id := makeObject(t, c, bytesOn(100, 0), 5)
	o, err := c.Get(background, id, GetOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, _, err = c.Exists(background, id)
	require.ErrorAs(t, err, new(*LostError))
	again := startServer(t, ServerOptions{Path: s.Path()})
	there, sealed, err := c.Exists(background, id)
	require.NoError(t, err)
	assert.True(t, there && sealed)
	got, err := newDeviceClient(t, again, 1).Get(background, id, GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, byte(5), contents(t, got.Array())[99])
	require.NoError(t, got.Release())
	require.NoError(t, o.Release())
}

// Who handles signals meanwhile is told by Prompt of what Seal would wait for.
func TestASealWaitsForWorkOnItsDevice(t *testing.T) {
	fake := backendtest.NewFake(backendtest.FakeOptions{Manual: true})
	r, err := gobuffer.NewRuntime(fake, host.New())
	require.NoError(t, err)
	c, err := Connect(background, startServer(t, ServerOptions{}).Path(), r)
	require.NoError(t, err)
	defer c.Close()
	b, err := c.Create(background, bytesOn(1000, 0))
	require.NoError(t, err)
	require.True(t, b.Prompt())
	require.NoError(t, fake.Fill(b.Array().Memory().Region(), []byte{1}, 1000, 0))
	require.False(t, b.Prompt(), "another library has work there")
	o, err := b.Seal(background)
	require.NoError(t, err)
	assert.Equal(t, byte(1), contents(t, o.Array())[999])
	require.NoError(t, o.Release())
}
