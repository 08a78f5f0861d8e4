package gobuffer_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

var homeOfHost, homeOfDevice = place{backends.Malloc, backends.HostDevice}, place{backends.CUDA, 0}

// othersMemory is host memory of somebody else's, of which parts may be page-locked.
type othersMemory struct {
	w      *world
	data   []byte
	memory *gobuffer.Array // which keeps the bytes
	base   backends.Address
}

func (w *world) others(size int) *othersMemory {
	m := w.array(homeOfHost.options(gobuffer.Sync), model{arrayiface.Uint8, []int{size}, make([]byte, size)})
	return &othersMemory{w, hostBytes(m.Address(), size), m, m.Address()}
}

func (f *othersMemory) lock(from, to int) { f.w.cuda.LockHost(f.at(from), to-from, backends.CUDAHost) }

func (f *othersMemory) unlock(from int) { f.w.cuda.UnlockHost(f.at(from)) }

func (f *othersMemory) at(i int) backends.Address { return f.base + backends.Address(i) }

// adopt is an Array of some of the bytes.
func (f *othersMemory) adopt(from, to int, t gobuffer.Transfer) *gobuffer.Array {
	f.w.t.Helper()
	at := backends.Region{Address: f.at(from), Allocator: backends.Malloc, Device: backends.HostDevice}
	m, err := f.w.runtime.Adopt(at, to-from, 0, func() {})
	require.NoError(f.w.t, err)
	layout, err := arrayiface.NewLayout(arrayiface.Uint8, []int{to - from}, nil)
	require.NoError(f.w.t, err)
	return gobuffer.View(m, at.Address, layout, to-from, false, homeOfHost.options(t))
}

func bytesOf(value byte, n int) model {
	return model{arrayiface.Uint8, []int{n}, bytes.Repeat([]byte{value}, n)}
}

// asCUDA is a device whose copies of ordinary host memory are as CUDA's: those of page-locked memory alone are late.
var asCUDA = backendtest.FakeOptions{Manual: true}

func TestMemoryThatOthersLockedGoesByTheModes(t *testing.T) {
	for mode, over := range map[gobuffer.Transfer][2]bool{gobuffer.Async: {false, false},
		gobuffer.SyncHost: {true, false}, gobuffer.Sync: {true, true}} {
		for name, call := range map[string]func(to, from *gobuffer.Array) error{
			"assign": (*gobuffer.Array).Assign,
			"many": func(to, from *gobuffer.Array) error {
				return gobuffer.CopyMany([]*gobuffer.Array{to}, []*gobuffer.Array{from})
			},
			"blocks": func(to, from *gobuffer.Array) error {
				return copyAllBlocks(to, from)
			},
		} {
			w := newWorld(t, 1, asCUDA)
			f := w.others(64)
			f.lock(0, 64)
			host, device := f.adopt(8, 40, mode), w.array(homeOfDevice.options(mode), bytesOf(3, 32))
			require.NoError(t, call(host, device))
			assert.Equal(t, over[0], f.data[8] == 3 && f.data[39] == 3, "%s to the host, %s", name, mode)
			w.assertHolds(host, bytesOf(3, 32), "%s", name)
			copy(f.data[8:], bytes.Repeat([]byte{5}, 32))
			require.NoError(t, call(device, host))
			assert.Equal(t, over[1], w.peek(device.Memory())[0] == 5, "%s to the device, %s", name, mode)
			w.assertHolds(device, bytesOf(5, 32), "%s", name)
			closeAll(t, host, device, f.memory)
			f.unlock(0)
		}
	}
}

// copyAllBlocks copies bytes as blocks of one.
func copyAllBlocks(to, from *gobuffer.Array) error {
	index := make([]int64, to.Size())
	for i := range index {
		index[i] = int64(i)
	}
	list, err := gobuffer.Adopt(index)
	if err != nil {
		return err
	}
	defer list.Close()
	return gobuffer.CopyBlocks([]*gobuffer.Array{to}, list.Array, []*gobuffer.Array{from}, list.Array)
}

// TestMemoryThatIsLockedInPartIsOrdinary: no driver copies it in one piece.
func TestMemoryThatIsLockedInPartIsOrdinary(t *testing.T) {
	w := newWorld(t, 1, asCUDA)
	f := w.others(64)
	f.lock(32, 64)
	device := w.array(homeOfDevice.options(gobuffer.Async), bytesOf(3, 32))
	host := f.adopt(16, 48, gobuffer.Async)
	require.NoError(t, host.Assign(device))
	assert.Equal(t, bytesOf(3, 32).data, f.data[16:48], "nobody asks for ordinary memory")
	closeAll(t, host, device, f.memory)
	f.unlock(32)
}

// vague is a device whose runtime does not know how far a lock reaches.
type vague struct{ *backendtest.Fake }

func (v vague) Locate(at backends.Address) (backends.Location, error) {
	found, err := v.Fake.Locate(at)
	found.Base, found.Size = 0, 0
	return found, err
}

func TestHowFarALockReachesMayBeUnknown(t *testing.T) {
	for _, locked := range []int{20, 64} {
		w := newWorld(t, 1, asCUDA)
		var err error
		w.runtime, err = gobuffer.NewRuntime(host.New(), vague{w.cuda}, w.hip)
		require.NoError(t, err)
		gobuffer.WaitAtReleases(w.runtime)
		f := w.others(64)
		f.lock(0, locked)
		device, to := w.array(homeOfDevice.options(gobuffer.Async), bytesOf(3, 32)), f.adopt(8, 40, gobuffer.Async)
		require.NoError(t, to.Assign(device))
		assert.Equal(t, locked < 40, f.data[8] == 3, "it is enqueued if both ends are page-locked")
		w.assertHolds(to, bytesOf(3, 32))
		closeAll(t, to, device, f.memory)
		f.unlock(0)
	}
}

// TestALockMayEndBetweenTwoCopies: what is pending then was enqueued while the memory was page-locked, and ordinary
// memory is read at once.
func TestALockMayEndBetweenTwoCopies(t *testing.T) {
	for name, back := range map[string]func(to, from *gobuffer.Array) error{
		"one":  (*gobuffer.Array).Assign,
		"many": func(to, from *gobuffer.Array) error { return manyOf(to, from) },
		"blocks": func(to, from *gobuffer.Array) error {
			return copyAllBlocks(to, from)
		},
	} {
		w := newWorld(t, 1, asCUDA)
		f := w.others(64)
		f.lock(0, 64)
		host, device := f.adopt(0, 64, gobuffer.Async), w.array(homeOfDevice.options(gobuffer.Async), bytesOf(3, 64))
		other := w.array(homeOfDevice.options(gobuffer.Async), bytesOf(9, 64))
		stream := w.stream(w.cuda, 0)
		require.NoError(t, device.SetStream(stream, gobuffer.Async))
		require.NoError(t, host.Assign(device))
		assert.NotEqual(t, byte(3), f.data[0], "the copy is pending")
		f.unlock(0)
		require.NoError(t, back(other, host))
		w.assertHolds(other, bytesOf(3, 64), "%s", name)
		closeAll(t, host, device, other, f.memory)
		require.NoError(t, w.cuda.DestroyStream(0, stream))
	}
}

// contextual is a device that may take memory which was locked for another one for ordinary memory.
type contextual struct{ *backendtest.Fake }

func (contextual) ReadsInOrder(_ backends.Region, _, device int, _ backends.Stream) (bool, error) {
	return device == 0, nil
}

func TestALockMayBeForAnotherDevice(t *testing.T) {
	for name, back := range map[string]func(to, from *gobuffer.Array) error{
		"one": (*gobuffer.Array).Assign, "many": manyOf, "blocks": copyAllBlocks,
	} {
		for reader := range 2 {
			w := newWorld(t, 2, asCUDA)
			var err error
			w.runtime, err = gobuffer.NewRuntime(host.New(), contextual{w.cuda}, w.hip)
			require.NoError(t, err)
			gobuffer.WaitAtReleases(w.runtime)
			f := w.others(64)
			f.lock(0, 64)
			host := f.adopt(0, 64, gobuffer.Async)
			device := w.array(homeOfDevice.options(gobuffer.Async), bytesOf(3, 64))
			other := w.array(place{backends.CUDA, reader}.options(gobuffer.Async), bytesOf(9, 64))
			require.NoError(t, host.Assign(device))
			require.NoError(t, back(other, host))
			assert.Equal(t, reader == 1, f.data[0] == 3, "%s: device %d may read at once", name, reader)
			w.assertHolds(other, bytesOf(3, 64), "%s", name)
			closeAll(t, host, device, other, f.memory)
			f.unlock(0)
		}
	}
}

// manyOf copies two halves.
func manyOf(to, from *gobuffer.Array) (err error) {
	var lists [2][]*gobuffer.Array
	for i, a := range []*gobuffer.Array{to, from} {
		for _, start := range []int{0, a.Size() / 2} {
			part, err := a.Slice(0, start, start+a.Size()/2, 1)
			if err != nil {
				return err
			}
			defer part.Lent().Close()
			lists[i] = append(lists[i], part)
		}
	}
	return gobuffer.CopyMany(lists[0], lists[1])
}

// TestWhoReadsLockedMemoryWaits: however that is done.
func TestWhoReadsLockedMemoryWaits(t *testing.T) {
	for name, read := range map[string]func(w *world, host *gobuffer.Array) (byte, error){
		"access": func(w *world, host *gobuffer.Array) (byte, error) { return w.read(host).data[0], nil },
		"copy": func(w *world, host *gobuffer.Array) (byte, error) {
			copied, err := host.Copy(homeOfHost.options(gobuffer.Async), arrayiface.Uint8)
			if err != nil {
				return 0, err
			}
			defer copied.Close()
			return w.read(copied).data[0], nil
		},
		"covering": func(_ *world, host *gobuffer.Array) (byte, error) {
			_, busy, err := host.Covering()
			if busy {
				return 0, err
			}
			return hostBytes(host.Address(), 1)[0], err
		},
		"synchronize": func(_ *world, host *gobuffer.Array) (byte, error) {
			err := host.Synchronize()
			return hostBytes(host.Address(), 1)[0], err
		},
		"another device's copy": func(w *world, host *gobuffer.Array) (byte, error) {
			other := w.array(place{backends.CUDA, 1}.options(gobuffer.Sync), bytesOf(0, host.Size()))
			defer other.Close()
			err := other.Assign(host)
			return w.read(other).data[0], err
		},
		"release": func(_ *world, host *gobuffer.Array) (byte, error) {
			at := host.Address()
			err := host.Close()
			return hostBytes(at, 1)[0], err
		},
	} {
		w := newWorld(t, 2, asCUDA)
		f := w.others(64)
		f.lock(0, 64)
		host, device := f.adopt(0, 64, gobuffer.Async), w.array(homeOfDevice.options(gobuffer.Async), bytesOf(3, 64))
		require.NoError(t, host.Assign(device))
		assert.NotEqual(t, byte(3), f.data[0], "the copy is pending")
		got, err := read(w, host)
		require.NoError(t, err, name)
		assert.Equal(t, byte(3), got, name)
		if name != "release" {
			closeAll(t, host)
		}
		closeAll(t, device, f.memory)
		f.unlock(0)
	}
}

// TestCopiesThatDependOnEachOtherTakeLockedMemoryForOrdinary: another Memory may have the same bytes.
func TestCopiesThatDependOnEachOtherTakeLockedMemoryForOrdinary(t *testing.T) {
	index, err := gobuffer.Adopt([]int64{0})
	require.NoError(t, err)
	for name, call := range map[string]func(to, from []*gobuffer.Array) error{
		"many": gobuffer.CopyMany,
		"blocks": func(to, from []*gobuffer.Array) error {
			return gobuffer.CopyBlocks(to, index.Array, from, index.Array)
		},
	} {
		w := newWorld(t, 1, asCUDA)
		f := w.others(8)
		f.lock(0, 8)
		host, again := f.adopt(0, 8, gobuffer.Async), f.adopt(0, 8, gobuffer.Async)
		device := w.array(homeOfDevice.options(gobuffer.Async), bytesOf(3, 8))
		target := w.array(homeOfHost.options(gobuffer.Async), bytesOf(0, 8))
		require.NoError(t, call([]*gobuffer.Array{host, target}, []*gobuffer.Array{device, again}))
		assert.Equal(t, byte(3), w.read(target).data[0], name)
		closeAll(t, host, again, device, target, f.memory)
		f.unlock(0)
	}
	require.NoError(t, index.Close())
}

// lockedWalk is random operations beside a plain model: page-locked and ordinary memory of others, whose locks begin
// and end at any time, and arrays on devices.
type lockedWalk struct {
	*world
	random  *rand.Rand
	f       *othersMemory
	locks   map[int]int // end by start
	hosts   []*gobuffer.Array
	starts  []int
	devices []*gobuffer.Array
	streams []backends.Stream
	host    []byte // what the bytes of others are to be
	there   [][]byte
	value   byte
}

const walkBytes, walkArray = 96, 16

func newLockedWalk(t *testing.T, seed uint64) *lockedWalk {
	w := newWorld(t, 2, asCUDA)
	x := &lockedWalk{world: w, random: rand.New(rand.NewPCG(seed, 21)), f: w.others(walkBytes), locks: map[int]int{},
		host: make([]byte, walkBytes)}
	for start := 0; start < walkBytes; start += walkArray {
		x.hosts = append(x.hosts, x.f.adopt(start, start+walkArray, x.mode()))
		x.starts = append(x.starts, start)
	}
	for i := range 4 {
		a := w.array(place{backends.CUDA, i % 2}.options(x.mode()), bytesOf(byte(i), walkArray))
		s := w.stream(w.cuda, i%2)
		require.NoError(t, a.SetStream(s, x.mode()))
		x.devices, x.streams = append(x.devices, a), append(x.streams, s)
		x.there = append(x.there, bytes.Repeat([]byte{byte(i)}, walkArray))
	}
	return x
}

func (x *lockedWalk) mode() gobuffer.Transfer { return gobuffer.Transfer(x.random.IntN(3)) }

func (x *lockedWalk) own(i int) []byte { return x.host[x.starts[i]:][:walkArray] }

// part is the same bytes of two arrays, and of their models.
func (x *lockedWalk) part(a, b *gobuffer.Array, to, from []byte) (d, s *gobuffer.Array) {
	start := x.random.IntN(walkArray)
	end := start + 1 + x.random.IntN(walkArray-start)
	d, err := a.Slice(0, start, end, 1)
	require.NoError(x.t, err)
	s, err = b.Slice(0, start, end, 1)
	require.NoError(x.t, err)
	copy(to[start:end], from[start:end])
	return d, s
}

// pair is an array of the host's and one of a device's, either way.
func (x *lockedWalk) pair(i, j int) (d, s *gobuffer.Array) {
	if x.random.IntN(2) == 0 {
		return x.part(x.hosts[i], x.devices[j], x.own(i), x.there[j])
	}
	return x.part(x.devices[j], x.hosts[i], x.there[j], x.own(i))
}

func (x *lockedWalk) step() string {
	i, j := x.random.IntN(len(x.hosts)), x.random.IntN(len(x.devices))
	switch x.random.IntN(10) {
	case 0, 1:
		d, s := x.pair(i, j)
		require.NoError(x.t, d.Write(s))
		closeAll(x.t, d, s)
		return fmt.Sprintf("copy %d %d", i, j)
	case 2, 3:
		var to, from []*gobuffer.Array
		for n := range 2 + x.random.IntN(3) {
			d, s := x.pair((i+n)%len(x.hosts), (j+n)%len(x.devices))
			to, from = append(to, d), append(from, s)
		}
		if x.random.IntN(2) == 0 {
			require.NoError(x.t, gobuffer.CopyMany(to, from))
		} else {
			for k := range to {
				require.NoError(x.t, copyAllBlocks(to[k], from[k]))
			}
		}
		closeAll(x.t, append(to, from...)...)
		return fmt.Sprintf("many %d %d", i, j)
	case 4:
		start := walkArray / 2 * x.random.IntN(2*walkBytes/walkArray)
		end := min(walkBytes, start+walkArray/2*(1+x.random.IntN(5)))
		for from, to := range x.locks {
			if from < end && start < to {
				return "no lock"
			}
		}
		x.f.lock(start, end)
		x.locks[start] = end
		return fmt.Sprintf("lock %d to %d", start, end)
	case 5:
		for start := range x.locks {
			x.f.unlock(start)
			delete(x.locks, start)
			return fmt.Sprintf("unlock %d", start)
		}
		return "no unlock"
	case 6:
		x.value++
		v := x.scalar(arrayiface.Uint8, int(x.value)%100)
		require.NoError(x.t, x.devices[j].Fill(v))
		copy(x.there[j], bytes.Repeat([]byte{x.value % 100}, walkArray))
		closeAll(x.t, v)
		return fmt.Sprintf("fill device %d", j)
	case 7:
		x.value++
		v := x.scalar(arrayiface.Uint8, int(x.value)%100)
		require.NoError(x.t, x.hosts[i].Fill(v))
		copy(x.own(i), bytes.Repeat([]byte{x.value % 100}, walkArray))
		closeAll(x.t, v)
		return fmt.Sprintf("fill host %d", i)
	case 8:
		require.Equal(x.t, x.own(i), x.read(x.hosts[i]).data, "host %d", i)
		return fmt.Sprintf("read host %d", i)
	}
	// Its end waits, and another one finds all that there is.
	closeAll(x.t, x.hosts[i])
	require.Equal(x.t, x.own(i), x.f.data[x.starts[i]:][:walkArray], "the bytes of %d", i)
	x.hosts[i] = x.f.adopt(x.starts[i], x.starts[i]+walkArray, x.mode())
	return fmt.Sprintf("adopt %d again", i)
}

func TestRandomWalkOfLockedMemory(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := newLockedWalk(t, seed)
			for range 40 {
				what := x.step()
				for i, a := range x.hosts {
					if _, busy := a.Memory().Busy(); !busy {
						require.Equal(t, x.own(i), x.f.data[x.starts[i]:][:walkArray], "host %d after %s", i, what)
					}
				}
			}
			for j, a := range x.devices {
				require.Equal(t, x.there[j], x.read(a).data, "device %d", j)
			}
			closeAll(t, append(append(x.hosts, x.devices...), x.f.memory)...)
			require.Equal(t, x.host, x.f.data)
			for start := range x.locks {
				x.f.unlock(start)
			}
			for i, s := range x.streams {
				require.NoError(t, x.cuda.DestroyStream(i%2, s))
			}
		})
	}
}
