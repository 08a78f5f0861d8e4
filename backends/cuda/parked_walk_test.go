package cuda

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// parkedWalk is memory of the driver's pools, and what each block holds.
type parkedWalk struct {
	*rig
	t       *testing.T
	random  *rand.Rand
	blocks  []heldBlock
	data    []byte
	room    backends.Region // of data, which blocks are read into
	streams [2][]backends.Stream
	fault   string // the call that fails next, if any
	failed  int    // calls that ended with an error
	again   int    // blocks that were taken without the driver
}

type heldBlock struct {
	block
	stream backends.Stream
	value  byte
}

// TestParkedMemoryIsLikePlainMemory walks at random over two devices, with streams that end, limits, and a driver that
// fails now and then.
func TestParkedMemoryIsLikePlainMemory(t *testing.T) {
	again, failed := 0, 0
	for seed := range uint64(12) {
		w := &parkedWalk{rig: emulate(t, withDevices(2)), t: t, random: rand.New(rand.NewPCG(seed, 7))}
		w.data, w.room = w.host(t, 64<<10)
		for device := range w.streams {
			w.streams[device] = []backends.Stream{0, legacyStream}
		}
		for step := range 400 {
			w.step(step/50%2 == 0)
			w.check()
			require.False(t, t.Failed(), "seed %d", seed)
		}
		w.fault = ""
		for len(w.blocks) > 0 {
			w.free()
		}
		for device, list := range w.streams {
			for _, s := range list[2:] {
				require.NoError(t, w.DestroyStream(device, s))
			}
			require.NoError(t, w.LimitPool(backends.CUDAAsync, device, backends.DefaultLimit))
		}
		require.NoError(t, w.Trim())
		w.check()
		failed += w.failed
		again += w.again
	}
	assert.Greater(t, failed, 20)
	assert.Greater(t, again, 200)
}

var parkedFaults = []string{"cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemPoolTrimTo", "cuCtxPushCurrent_v2",
	"cuMemFreeAsync", "cuCtxGetCurrent", "cuMemPoolGetAttribute", "cuCtxSynchronize"}

func (w *parkedWalk) step(more bool) {
	w.fault = ""
	if w.random.IntN(6) == 0 {
		w.fault = parkedFaults[w.random.IntN(len(parkedFaults))]
	}
	switch n := w.random.IntN(60); {
	case n < 15 || more && n < 40:
		w.allocate()
	case n < 55:
		w.free()
	case n < 57:
		w.expect(w.call(w.Trim))
	case n < 58:
		limit := []int64{backends.DefaultLimit, backends.NoLimit, 1 << 20, 8 << 10}[w.random.IntN(4)]
		device, a := w.random.IntN(2), []backends.Allocator{backends.CUDA, backends.CUDAAsync}[w.random.IntN(2)]
		w.expect(w.call(func() error { return w.LimitPool(a, device, limit) }))
	case n < 59:
		require.NoError(w.t, w.LimitPool(backends.CUDAAsync, w.random.IntN(2), backends.DefaultLimit))
	default:
		w.changeStreams()
	}
}

// call makes a call, which the fault of the step may be met by.
func (w *parkedWalk) call(f func() error) error {
	if w.fault != "" {
		w.fail(w.fault, 1, invalidValue)
		defer w.stopFailing()
	}
	return f()
}

// expect takes an error for one of the fault's.
func (w *parkedWalk) expect(err error) {
	if err != nil {
		w.failed++
		require.NotEmpty(w.t, w.fault, err)
	}
}

func (w *parkedWalk) allocate() {
	device := w.random.IntN(2)
	s := w.streams[device][w.random.IntN(len(w.streams[device]))]
	size := []int{1 << 10, 4 << 10, 4 << 10, 4<<10 + 8, 64 << 10}[w.random.IntN(5)]
	request := backends.Request{Allocator: backends.CUDAAsync, Device: device, Size: size, Stream: s}
	request.Zero = w.random.IntN(6) == 0
	at, ok := w.AllocateAtOnce(request)
	if ok {
		w.again++
	} else {
		err := w.call(func() (err error) { at, err = w.Allocate(request); return err })
		var full *backends.OutOfMemoryError
		if errors.As(err, &full) && full.Limited {
			return
		}
		if w.expect(err); err != nil {
			return
		}
	}
	b := heldBlock{block{backends.Region{Address: at, Allocator: backends.CUDAAsync, Device: device}, size}, s,
		byte(1 + w.random.IntN(255))}
	for _, other := range w.blocks {
		before := b.Address+backends.Address(size) <= other.Address
		after := other.Address+backends.Address(other.size) <= b.Address
		require.True(w.t, before || after, "memory is handed out twice")
	}
	if request.Zero {
		b.value = 0
	} else {
		require.NoError(w.t, w.Fill(b.Region, []byte{b.value}, size, s))
	}
	w.blocks = append(w.blocks, b)
}

func (w *parkedWalk) free() {
	if len(w.blocks) == 0 {
		return
	}
	i := w.random.IntN(len(w.blocks))
	b := w.blocks[i]
	if w.random.IntN(4) == 0 {
		_, err := w.Copy(w.room, b.Region, b.size, b.stream)
		require.NoError(w.t, err)
		require.NoError(w.t, w.Synchronize(b.Device, b.stream))
		assert.Equal(w.t, bytes.Repeat([]byte{b.value}, b.size), w.data[:b.size])
	}
	found, err := w.Locate(b.Address)
	require.NoError(w.t, err)
	assert.Equal(w.t, backends.CUDAAsync, found.Allocator)
	if !w.FreeAtOnce(b.Region, b.size, b.stream) {
		err := w.call(func() error { return w.Free(b.Region, b.size, b.stream) })
		if w.expect(err); err != nil {
			return // it is not free
		}
	}
	require.NoError(w.t, w.Synchronize(b.Device, b.stream)) // the driver has it when the stream has passed
	found, err = w.Locate(b.Address)
	require.NoError(w.t, err)
	assert.Equal(w.t, nowhere(b.Address), found, "it was freed")
	w.blocks = slices.Delete(w.blocks, i, i+1)
}

// changeStreams makes a stream, or ends one: what was used on it is used on the default stream then.
func (w *parkedWalk) changeStreams() {
	device := w.random.IntN(2)
	list := w.streams[device]
	if len(list) < 4 {
		s, err := w.NewStream(device)
		require.NoError(w.t, err)
		w.streams[device] = append(list, s)
		return
	}
	last := list[len(list)-1]
	require.NoError(w.t, w.Synchronize(device, last))
	require.NoError(w.t, w.DestroyStream(device, last))
	w.streams[device] = list[:len(list)-1]
	for i := range w.blocks {
		if b := &w.blocks[i]; b.Device == device && b.stream == last {
			b.stream = 0
		}
	}
}

// check compares how much memory is in use on each device.
func (w *parkedWalk) check() {
	var live [2]int64
	for device := range live {
		require.NoError(w.t, w.Synchronize(device, legacyStream))
	}
	for _, b := range w.blocks {
		live[b.Device] += int64(b.size)
	}
	for _, p := range w.Pools() {
		if p.Allocator == backends.CUDAAsync {
			assert.Equal(w.t, live[p.Device], p.Current, "device %d", p.Device)
			assert.GreaterOrEqual(w.t, p.Peak, p.Current+p.Cached)
		}
	}
}
