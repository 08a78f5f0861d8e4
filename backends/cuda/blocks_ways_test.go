package cuda

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/staging"
)

// TestBlocksAreFewCalls counts what the driver is asked for 2,048 blocks.
func TestBlocksAreFewCalls(t *testing.T) {
	const count, size = 2048, 32
	r := emulate(t, nil)
	stream := r.newStream(t, 0)
	random := rand.New(rand.NewPCG(13, 14))
	target, source := r.room(t, backends.CUDA, 2*count*size), r.room(t, backends.CUDAHost, 2*count*size)
	for _, by := range []backends.Allocator{onHost, backends.CUDA} {
		numbers := make([]int64, count)
		for k, n := range random.Perm(2 * count)[:count] {
			numbers[k] = int64(n)
		}
		list := r.index(t, random, by, numbers, 2*count)
		copyOnce := func(size int) map[string]int {
			blocks := &backends.Blocks{Size: size, Count: count, To: list, From: list, Repeated: by != onHost,
				Planes: []backends.Plane{{Dst: target, Src: source, DstStride: 32, SrcStride: 32}}}
			before := map[string]int{}
			for _, symbol := range symbols() {
				before[symbol] = r.calls(symbol)
			}
			_, err := r.CopyBlocks(blocks, stream)
			require.NoError(t, err)
			require.NoError(t, r.Synchronize(0, stream))
			for symbol, calls := range before {
				before[symbol] = r.calls(symbol) - calls
			}
			return before
		}
		copyOnce(size)
		calls, all := copyOnce(size), 0
		for symbol, n := range calls {
			if symbol != "cuCtxGetCurrent" {
				all += n
			}
		}
		assert.Less(t, all, 15, "%v", calls)
		assert.Equal(t, 1, calls["cuLaunchKernel"])
	}
	r.failures.collect(&r.memoryFloor)
}

// TestLargeBlocksGoByTheCopyEngine, of which the bus is the limit.
func TestLargeBlocksGoByTheCopyEngine(t *testing.T) {
	r := emulate(t, nil)
	const size = ofCopyEngine
	host, device := r.room(t, backends.CUDAHost, 3*size), r.room(t, backends.CUDA, 3*size)
	other := r.room(t, backends.CUDA, 3*size)
	for i, data := 0, hostBytes(host.Address, 3*size); i < len(data); i++ {
		data[i] = byte(i >> 10)
	}
	for _, c := range []struct {
		dst, src        backends.Region
		batches, kernel int
	}{{device, host, 1, 0}, {other, device, 0, 1}, {host, other, 1, 0}} {
		batches, kernels := r.calls("cuMemcpyBatchAsync"), r.calls("cuLaunchKernel")
		_, err := r.CopyBlocks(&backends.Blocks{Size: size, Count: 2, To: backends.BlockIndex{List: []int64{2, 0}, Extent: 3},
			From:   backends.BlockIndex{List: []int64{0, 2}, Extent: 3},
			Planes: []backends.Plane{{Dst: c.dst, Src: c.src, DstStride: size, SrcStride: size}}}, 0)
		require.NoError(t, err)
		assert.Equal(t, c.batches, r.calls("cuMemcpyBatchAsync")-batches)
		assert.Equal(t, c.kernel, r.calls("cuLaunchKernel")-kernels)
	}
	require.NoError(t, r.Synchronize(0, 0))
	for i, b := range hostBytes(host.Address, size) {
		require.EqualValues(t, byte((2*size+i)>>10), b)
	}
}

// TestBlocksBetweenDevices are read by the target's device, if it reaches them.
func TestBlocksBetweenDevices(t *testing.T) {
	onEachDriver(t, 2, func(t *testing.T, r *rig) {
		for _, a := range []backends.Allocator{backends.CUDA, backends.CUDAAsync, backends.CUDAVMM} {
			source, target := r.reserve(t, a, 1, 4096, 0), r.reserve(t, a, 0, 4096, 0)
			require.NoError(t, r.Fill(source.Region, []byte{1, 2, 3, 4}, 1024, 0))
			require.NoError(t, r.Fill(target.Region, []byte{0}, 4096, 0))
			require.NoError(t, errors.Join(r.Synchronize(0, 0), r.Synchronize(1, 0)))
			blocks := &backends.Blocks{Size: 1024, Count: 2, To: backends.BlockIndex{List: []int64{3, 1}, Extent: 4},
				From:   backends.BlockIndex{List: []int64{0, 2}, Extent: 4},
				Planes: []backends.Plane{{Dst: target.Region, Src: source.Region, DstStride: 1024, SrcStride: 1024}}}
			_, err := r.CopyBlocks(blocks, 0)
			if can, _ := r.CanAccess(0, 1); !can {
				require.ErrorIs(t, err, errors.ErrUnsupported)
				continue
			}
			require.NoError(t, err)
			data := r.read(t, target.Region, 4096, 0)
			assert.Equal(t, []byte{0, 0, 1, 2, 1, 2},
				[]byte{data[0], data[2048], data[1024], data[1025], data[3072], data[3073]})
		}
	})
}

// TestMemoryThatNoPeerReaches is that of another library's context.
func TestMemoryThatNoPeerReaches(t *testing.T) {
	r := emulate(t, withDevices(2))
	target, own := r.reserve(t, backends.CUDA, 0, 4096, 0), r.reserve(t, backends.CUDA, 1, 4096, 0)
	context := r.newContext(t, 1)
	v, err := r.enterContext(context)
	require.NoError(t, err)
	require.NoError(t, r.call(r.driver.MemAlloc, v.slot(0), 4096))
	foreign := backends.Address(v.out[0])
	v.leave()
	for at, want := range map[backends.Address]error{own.Address: nil, foreign: errors.ErrUnsupported} {
		source := own.Region
		source.Address = at
		_, err = r.CopyBlocks(&backends.Blocks{Size: 64, Count: 1, To: backends.BlockIndex{Extent: 1},
			From: backends.BlockIndex{Extent: 1}, Planes: []backends.Plane{{Dst: target.Region, Src: source}}}, 0)
		require.ErrorIs(t, err, want)
	}
	require.NoError(t, r.Synchronize(0, 0))
	v, err = r.enterContext(context)
	require.NoError(t, err)
	defer v.leave()
	require.NoError(t, r.call(r.driver.MemFree, uintptr(foreign)))
}

// TestBlocksThatGoAnotherWay are not begun.
func TestBlocksThatGoAnotherWay(t *testing.T) {
	r := emulate(t, nil)
	device, host := r.room(t, backends.CUDA, 4096), r.room(t, backends.CUDAHost, 4096)
	foreign := r.newForeignStream(t, r.newContext(t, 0))
	indices := r.room(t, backends.CUDA, 64)
	elsewhere := indices
	elsewhere.Device = 1
	counted := backends.BlockIndex{Extent: 4}
	good := backends.Blocks{Size: 1024, Count: 4, To: counted, From: counted,
		Planes: []backends.Plane{{Dst: device, Src: host, DstStride: 1024, SrcStride: 1024}}}
	_, err := r.CopyBlocks(&good, 0)
	require.NoError(t, err)
	launches := r.calls("cuLaunchKernel")
	for name, c := range map[string]struct {
		change func(b *backends.Blocks)
		stream backends.Stream
	}{
		"a foreign context's": {func(*backends.Blocks) {}, foreign},
		"memory in disguise":  {func(b *backends.Blocks) { b.Planes[0].Src.Allocator = backends.Malloc }, 0},
		"ordinary and named twice": {func(b *backends.Blocks) {
			b.Planes[0].Src, b.Repeated = r.room(t, backends.Malloc, 4096), true
		}, 0},
		"ordinary to ordinary": {func(b *backends.Blocks) {
			b.Planes[0].Src, b.Planes[0].Dst = r.room(t, backends.Malloc, 4096), r.room(t, backends.Malloc, 4096)
		}, 0},
		"ordinary and indices on a device": {func(b *backends.Blocks) {
			b.Planes[0].Src, b.To.Region, b.To.Width = r.room(t, backends.Malloc, 4096), indices, 4
		}, 0},
		"managed memory":  {func(b *backends.Blocks) { b.Planes[0].Src = r.room(t, backends.CUDAUnified, 4096) }, 0},
		"host to host":    {func(b *backends.Blocks) { b.Planes[0].Dst = r.room(t, backends.CUDAHost, 4096) }, 0},
		"too many blocks": {func(b *backends.Blocks) { b.To.Extent = 1 << 31 }, 0},
		"ordinary indices": {func(b *backends.Blocks) {
			b.To.Region, b.To.Width = r.room(t, backends.Malloc, 64), 4
		}, 0},
		"another device's indices": {func(b *backends.Blocks) { b.To.Region, b.To.Width = elsewhere, 4 }, 0},
	} {
		changed := good
		changed.Planes = slices.Clone(good.Planes)
		c.change(&changed)
		_, err := r.CopyBlocks(&changed, c.stream)
		require.ErrorIs(t, err, errors.ErrUnsupported, name)
	}
	assert.Equal(t, launches, r.calls("cuLaunchKernel"))
	require.NoError(t, r.Synchronize(0, 0))
	without := emulate(t, settings{KernelsSetting: "0"})
	_, err = without.CopyBlocks(&good, 0)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestBlocksInAGraph: the numbers of lists become part of it, and no memory of hamr's does.
func TestBlocksInAGraph(t *testing.T) {
	r := emulate(t, nil)
	random := rand.New(rand.NewPCG(15, 16))
	stream := r.newStream(t, 0)
	var copies, allocations int
	for range 10 {
		s := r.scatter(t, random, backends.CUDA, backends.CUDAHost, onHost, onHost)
		copies, allocations = r.calls("cuMemcpyHtoDAsync_v2"), r.calls("cuMemAlloc_v2")
		r.fail("cuStreamIsCapturing", 0, captureImplicit)
		_, err := r.CopyBlocks(&s.Blocks, stream)
		require.NoError(t, err)
		assert.Equal(t, copies, r.calls("cuMemcpyHtoDAsync_v2"))
		assert.Equal(t, allocations, r.calls("cuMemAlloc_v2"))
		s.To = backends.BlockIndex{Region: s.target, Width: 4, Extent: s.To.Extent}
		_, err = r.CopyBlocks(&s.Blocks, stream)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		r.stopFailing()
		require.True(t, slices.Equal(s.want, r.got(t, s, stream)))
		s = r.scatter(t, random, backends.CUDA, backends.CUDAHost, backends.CUDA, backends.CUDAHost)
		_, err = r.CopyBlocks(&s.Blocks, stream)
		require.NoError(t, err)
		r.write(t, s.target, s.have)
		s.Failed = nil
		asked := r.calls("cuEventQuery")
		r.fail("cuStreamIsCapturing", 0, captureImplicit)
		_, err = r.CopyBlocks(&s.Blocks, stream)
		r.stopFailing()
		assert.Nil(t, s.Failed)
		assert.Equal(t, asked, r.calls("cuEventQuery"), "which would end a capture")
		if s.Count > mostChecked { // which take memory that no graph may have
			require.ErrorIs(t, err, errors.ErrUnsupported)
			r.failures.collect(&r.memoryFloor)
			continue
		}
		require.NoError(t, err)
		require.True(t, slices.Equal(s.want, r.got(t, s, stream)))
		r.failures.collect(&r.memoryFloor)
	}
}

// TestBlocksOfOrdinaryMemoryThatGoAnotherWay: where nothing may be staged, or nothing is left to stage with.
func TestBlocksOfOrdinaryMemoryThatGoAnotherWay(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 20))
	for name, c := range map[string]struct {
		settings settings
		captured bool
	}{
		"no threads":            {settings{staging.ThreadsSetting: "0"}, false},
		"no page-locked memory": {settings{staging.PinnedSetting: "0"}, false},
		"less than a block":     {settings{staging.PinnedSetting: "1"}, false},
		"a capture":             {nil, true},
	} {
		for _, k := range [][2]backends.Allocator{{backends.CUDA, backends.Malloc}, {backends.Malloc, backends.CUDA}} {
			r := emulate(t, c.settings)
			s := r.scatter(t, random, k[0], k[1], onHost, onHost)
			if c.captured {
				r.fail("cuStreamIsCapturing", 0, captureImplicit)
			}
			_, err := r.CopyBlocks(&s.Blocks, 0)
			require.ErrorIs(t, err, errors.ErrUnsupported, name)
			r.stopFailing()
			require.True(t, slices.Equal(s.have, r.got(t, s, 0)), name)
		}
	}
}

// TestBlocksOfOrdinaryMemoryStop when they are asked to, and nobody uses the memory any more.
func TestBlocksOfOrdinaryMemoryStop(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	for _, k := range [][2]backends.Allocator{{backends.CUDA, backends.Malloc}, {backends.Malloc, backends.CUDA}} {
		r := emulate(t, nil)
		s := r.scatter(t, random, k[0], k[1], onHost, onHost)
		s.Stop = new(backends.Stop)
		s.Stop.Ask()
		_, err := r.CopyBlocks(&s.Blocks, 0)
		require.ErrorIs(t, err, backends.ErrStopped)
		require.True(t, slices.Equal(s.have, r.got(t, s, 0)))
		s.Stop = nil
		_, err = r.CopyBlocks(&s.Blocks, 0)
		require.NoError(t, err)
		require.True(t, slices.Equal(s.want, r.got(t, s, 0)))
	}
}

// A list may name a block twice if the caller does not know better.
func TestRepeatedNumbersOfLists(t *testing.T) {
	r := emulate(t, nil)
	target, source := r.room(t, backends.CUDA, 64), r.room(t, backends.CUDA, 64)
	r.write(t, source, []byte{1, 2, 3, 4})
	r.write(t, target, []byte{9, 9, 9, 9})
	_, err := r.CopyBlocks(&backends.Blocks{Size: 1, Count: 4,
		To:   backends.BlockIndex{List: []int64{2, 0, 2, 0}, Extent: 3},
		From: backends.BlockIndex{Extent: 4}, Repeated: true,
		Planes: []backends.Plane{{Dst: target, Src: source, DstStride: 1, SrcStride: 1}}}, 0)
	require.NoError(t, err)
	assert.Equal(t, []byte{4, 9, 3, 9}, r.readAll(t, target, 4))
}

func TestGridSettingThatIsNone(t *testing.T) {
	r := loadEmulated(t, settings{GridSetting: "0"})
	assert.Contains(t, unavailable(t, r.Backend).Reason, `HAMR_COPY_GRID is "0": a number of blocks of threads is needed`)
}

// tryBlocks copies blocks as the core does: it takes another way where this one is unsupported, and waits after an
// error.
func (r *rig) tryBlocks(blocks *backends.Blocks) error {
	err := copied(r.CopyBlocks(blocks, 0))
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if err != nil {
		_, _ = r.Synchronize(0, 0), r.Synchronize(0, 0)
	}
	return err
}

// stagedBlocks copies blocks of ordinary memory, as many to a chunk as need their pairs on the device.
func stagedBlocks(name string, to, from backends.Allocator) operation {
	return operation{name, 1, func(t *testing.T, r *rig) func() (func() error, error) {
		dst, src := r.room(t, to, 3000), r.room(t, from, 3000)
		index := backends.BlockIndex{Extent: 1000}
		blocks := &backends.Blocks{Size: 3, Count: 1000, To: index, From: index,
			Planes: []backends.Plane{{Dst: dst, Src: src, DstStride: 3, SrcStride: 3}}}
		return func() (func() error, error) {
			return nothing, r.tryBlocks(blocks)
		}
	}}
}

func listedBlocks(_ *testing.T, _ *rig, count int) backends.BlockIndex {
	return backends.BlockIndex{List: slices.Repeat([]int64{1, 2}, count)[:count], Extent: 3}
}

func namedBlocks(t *testing.T, r *rig, count int) backends.BlockIndex {
	index := backends.BlockIndex{Region: r.room(t, backends.CUDA, 4*count), Width: 4, Extent: 3}
	r.write(t, index.Region, make([]byte, 4*count))
	return index
}

// blocksOperation copies blocks, which the core waits for after an error.
func blocksOperation(name string, count int, to, from func(*testing.T, *rig, int) backends.BlockIndex) operation {
	return operation{name, 1, func(t *testing.T, r *rig) func() (func() error, error) {
		target, source := r.room(t, backends.CUDA, 3000), r.room(t, backends.CUDAHost, 3000)
		blocks := &backends.Blocks{Size: 1000, Count: count, Planes: []backends.Plane{{Dst: target, Src: source,
			DstStride: 1000, SrcStride: 1000}}, Repeated: true}
		blocks.To, blocks.From = to(t, r, count), from(t, r, count)
		t.Cleanup(func() { r.failures.collect(&r.memoryFloor) })
		return func() (func() error, error) {
			err := r.tryBlocks(blocks)
			return func() error { return r.Synchronize(0, 0) }, err
		}
	}}
}
