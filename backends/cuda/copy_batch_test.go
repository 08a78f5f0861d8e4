package cuda

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/internal/staging"
)

// room is memory of an allocator for a test, and how it is read and written from the host.
func (r *rig) room(t testing.TB, a backends.Allocator, size int) backends.Region {
	if a == backends.Malloc {
		_, at := pageable(t, size)
		return at
	}
	if a == backends.CUDAHost {
		_, at := r.host(t, size)
		return at
	}
	return r.reserve(t, a, 0, size, 0).Region
}

func (r *rig) write(t testing.TB, to backends.Region, data []byte) {
	if to.Allocator.ReachableFrom(backends.SpaceHost) {
		copy(hostBytes(to.Address, len(data)), data)
		return
	}
	staged, from := pageable(t, len(data))
	copy(staged, data)
	require.NoError(t, copied(r.Copy(to, from, len(data), 0)))
	require.NoError(t, r.Synchronize(0, 0))
}

// batched is CopyBatch of three copies on the legacy stream.
func batched(name string, to, from backends.Allocator) operation {
	return operation{name, 1, func(t *testing.T, r *rig) func() (func() error, error) {
		dst, src := r.room(t, to, 3000), r.room(t, from, 3000)
		return func() (func() error, error) {
			list := []backends.BatchCopy{{Dst: dst, Src: src, Size: 1000},
				{Dst: moved(dst, 1000), Src: moved(src, 1000), Size: 8},
				{Dst: moved(dst, 2000), Src: moved(src, 2000), Size: 999}}
			err := copied(r.CopyBatch(list, 0))
			if err != nil {
				// As the core does.
				_, _ = r.Synchronize(0, 0), r.Synchronize(0, 0)
			}
			return nothing, err
		}
	}}
}

// TestRandomBatches makes copies of random sizes and alignments, between all kinds of memory.
func TestRandomBatches(t *testing.T) {
	kinds := [][2]backends.Allocator{{backends.CUDA, backends.Malloc}, {backends.Malloc, backends.CUDA},
		{backends.CUDA, backends.CUDAAsync},
		{backends.CUDA, backends.CUDAHost}, {backends.CUDAHost, backends.CUDAAsync}, {backends.CUDAUnified, backends.CUDA},
		{backends.CUDAUnified, backends.CUDAHost}}
	for _, way := range []string{"", "kernel", "batch", "single"} {
		for _, more := range []settings{nil, {staging.ChunkSetting: "700", staging.ThreadsSetting: "3"},
			{staging.ThreadsSetting: "0"}, {KernelsSetting: "0"}} {
			s := settings{ManySetting: way}
			maps.Copy(s, more)
			test := func(t *testing.T, r *rig) {
				random := rand.New(rand.NewPCG(1, 2))
				own := r.newStream(t, 0)
				foreign := own
				if r.emulated() {
					foreign = r.newForeignStream(t, r.newContext(t, 0))
				}
				for _, k := range kinds {
					for range 6 {
						stream := []backends.Stream{0, legacyStream, perThreadStream, own, foreign}[random.IntN(5)]
						r.testBatch(t, random, k[0], k[1], stream)
					}
				}
			}
			t.Run(fmt.Sprintf("emulator %v", s), func(t *testing.T) { test(t, emulate(t, s)) })
			t.Run(fmt.Sprintf("driver %v", s), func(t *testing.T) { test(t, openDriver(t, s)) })
		}
	}
}

func (r *rig) testBatch(t *testing.T, random *rand.Rand, to, from backends.Allocator, stream backends.Stream) {
	const size = 20000
	dst, src := r.room(t, to, size), r.room(t, from, size)
	want, data := make([]byte, size), make([]byte, size)
	for i := range data {
		data[i], want[i] = byte(random.Uint32()), byte(random.Uint32())
	}
	require.NoError(t, r.Synchronize(0, 0))
	r.write(t, src, data)
	r.write(t, dst, want)
	var list []backends.BatchCopy
	for at := 0; at < size; {
		n := min(1+random.IntN([]int{30, 300, 4000}[random.IntN(3)]), size-at)
		if random.IntN(2) == 0 {
			from := random.IntN(size - n + 1)
			if random.IntN(2) == 0 {
				from = from &^ 15
			}
			list = append(list, backends.BatchCopy{Dst: moved(dst, at), Src: moved(src, from), Size: n})
			copy(want[at:], data[from:from+n])
		}
		at += n + random.IntN(20)
	}
	if len(list) == 0 {
		return
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	left, err := r.CopyBatch(list, stream)
	require.NoError(t, err)
	if from == backends.Malloc && left&backends.Reading == 0 {
		clear(hostBytes(src.Address, size)) // it has been read
	}
	if left != backends.Complete {
		require.NoError(t, r.Synchronize(0, stream))
	}
	var got []byte
	if to.ReachableFrom(backends.SpaceHost) {
		got = slices.Clone(hostBytes(dst.Address, size))
	} else {
		got = r.readAll(t, dst, size)
	}
	require.True(t, bytes.Equal(want, got), "%s to %s, stream %d, %d copies", from, to, stream, len(list))
}

// TestBatchesAreFewCalls counts what the driver is asked for 400 copies.
func TestBatchesAreFewCalls(t *testing.T) {
	const count, size = 400, 512
	batches := func(calls map[string]int) bool { return calls["cuMemcpyBatchAsync"] > 0 }
	kernels := func(calls map[string]int) bool { return calls["cuLaunchKernel"] == (count+mostRuns-1)/mostRuns }
	for _, c := range []struct {
		to, from backends.Allocator
		setting  string
		done     func(calls map[string]int) bool
	}{
		{backends.CUDA, backends.Malloc, "", batches},
		{backends.Malloc, backends.CUDA, "", batches},
		{backends.CUDA, backends.CUDAHost, "", kernels},
		{backends.CUDAHost, backends.CUDA, "", kernels},
		{backends.CUDA, backends.CUDAHost, "batch", batches},
		{backends.CUDA, backends.CUDA, "", kernels},
		{backends.CUDA, backends.CUDA, "batch", batches},
		{backends.CUDA, backends.Malloc, "kernel", func(calls map[string]int) bool { return calls["cuLaunchKernel"] > 0 }},
		{backends.Malloc, backends.CUDA, "kernel", func(calls map[string]int) bool { return calls["cuLaunchKernel"] > 0 }},
	} {
		r := emulate(t, settings{ManySetting: c.setting})
		dst, src := r.room(t, c.to, count*size), r.room(t, c.from, count*size)
		var list []backends.BatchCopy
		for i := range count {
			list = append(list, backends.BatchCopy{Dst: moved(dst, i*size), Src: moved(src, i*size), Size: size})
		}
		before := map[string]int{}
		for _, symbol := range symbols() {
			before[symbol] = r.calls(symbol)
		}
		require.NoError(t, copied(r.CopyBatch(list, 0)))
		calls, all := map[string]int{}, 0
		for _, symbol := range append(symbols(), "cuMemcpyBatchAsync") {
			calls[symbol] = r.calls(symbol) - before[symbol]
			if symbol != "cuPointerGetAttributes" && symbol != "cuMemcpyBatchAsync" {
				all += calls[symbol]
			}
		}
		assert.True(t, c.done(calls), "%v", calls)
		assert.Less(t, all, 60, "%v", calls)
		require.NoError(t, r.Synchronize(0, 0))
	}
}

// TestLargeCopiesOfAListGoByTheCopyEngine across the bus, and the others by few blocks of threads.
func TestLargeCopiesOfAListGoByTheCopyEngine(t *testing.T) {
	const large, small = ofCopyEngine, 3000
	r := emulate(t, nil)
	host, device := r.room(t, backends.CUDAHost, 2*large+2*small), r.room(t, backends.CUDA, 2*large+2*small)
	data := hostBytes(host.Address, 2*large+2*small)
	for i := range data {
		data[i] = byte(i >> 7)
	}
	want := slices.Clone(data)
	list := func(dst, src backends.Region) (list []backends.BatchCopy) {
		at := 0
		for _, size := range []int{large, small, large, small} {
			list = append(list, backends.BatchCopy{Dst: moved(dst, at), Src: moved(src, at), Size: size})
			at += size
		}
		return list
	}
	for _, ends := range [][2]backends.Region{{device, host}, {host, device}} {
		batches, kernels := r.calls("cuMemcpyBatchAsync"), r.calls("cuLaunchKernel")
		require.NoError(t, copied(r.CopyBatch(list(ends[0], ends[1]), 0)))
		assert.Equal(t, []int{1, 1}, []int{r.calls("cuMemcpyBatchAsync") - batches, r.calls("cuLaunchKernel") - kernels})
		require.NoError(t, r.Synchronize(0, 0))
		if ends[0] == device {
			clear(data)
		}
	}
	assert.True(t, bytes.Equal(want, data))
}

func TestOlderDriversHaveNoBatches(t *testing.T) {
	for _, absent := range [][]string{{"cuMemcpyBatchAsync_v2"}, {"cuMemcpyBatchAsync_v2", "cuMemcpyBatchAsync"}} {
		r := loadEmulated(t, settings{staging.ChunkSetting: "700"})
		r.loader = lacking{absent: absent}
		require.NoError(t, r.Probe())
		t.Cleanup(func() { r.assertClean(t) })
		random := rand.New(rand.NewPCG(3, 4))
		for range 10 {
			r.testBatch(t, random, backends.CUDA, backends.Malloc, 0)
			r.testBatch(t, random, backends.Malloc, backends.CUDA, 0)
		}
		assert.Equal(t, len(absent) == 1, r.calls("cuMemcpyBatchAsync") > 0)
	}
}

// Whoever handed out page-locked memory as if it were any other may have it written in stream order.
func TestBatchesOfPinnedMemoryInDisguise(t *testing.T) {
	r := emulate(t, nil)
	stream := r.newStream(t, 0)
	source, pinned := r.room(t, backends.CUDA, 2000), r.room(t, backends.CUDAHost, 2000)
	target := r.room(t, backends.CUDA, 2000)
	want := bytes.Repeat([]byte{1, 2, 3, 4}, 500)
	r.write(t, source, want)
	require.NoError(t, copied(r.Copy(pinned, source, 2000, stream)))
	pinned.Allocator = backends.Malloc
	list := []backends.BatchCopy{{Dst: target, Src: pinned, Size: 1000},
		{Dst: moved(target, 1000), Src: moved(pinned, 1000), Size: 1000}}
	left, err := r.CopyBatch(list, stream)
	require.NoError(t, err)
	assert.Equal(t, late, left)
	require.NoError(t, r.Synchronize(0, stream))
	assert.Equal(t, want, r.readAll(t, target, 2000))
}

// TestBatchesBesideTheDefaultStream run after what it holds, whichever stream comes first.
func TestBatchesBesideTheDefaultStream(t *testing.T) {
	r := emulate(t, settings{ManySetting: "batch"})
	target, source := r.room(t, backends.CUDA, 2000), r.room(t, backends.CUDA, 2000)
	require.NoError(t, r.Fill(source, []byte{7}, 2000, 0))
	list := []backends.BatchCopy{{Dst: target, Src: source, Size: 1000},
		{Dst: moved(target, 1000), Src: moved(source, 1000), Size: 1000}}
	require.NoError(t, copied(r.CopyBatch(list, 0)))
	for _, s := range r.devices[0].perThread {
		if s != 0 {
			require.NoError(t, r.Synchronize(0, s))
		}
	}
	assert.Equal(t, bytes.Repeat([]byte{7}, 2000), r.readAll(t, target, 2000))
	assert.Equal(t, 1, r.calls("cuMemcpyBatchAsync"))
}

// TestChunksAfterAFailure are another batch's at once, and what had been begun does not reach them.
func TestChunksAfterAFailure(t *testing.T) {
	for _, way := range []string{"batch", "single", "kernel"} {
		r := emulate(t, settings{ManySetting: way, staging.PinnedSetting: "262144"})
		first, second := r.newStream(t, 0), r.newStream(t, 0)
		device, target := r.room(t, backends.CUDA, 2000), r.room(t, backends.CUDA, 2000)
		host, source := r.room(t, backends.Malloc, 2000), r.room(t, backends.Malloc, 2000)
		want := bytes.Repeat([]byte{5}, 2000)
		r.write(t, device, bytes.Repeat([]byte{9}, 2000))
		r.write(t, source, want)
		both := func(to, from backends.Region) []backends.BatchCopy {
			return []backends.BatchCopy{{Dst: to, Src: from, Size: 1000},
				{Dst: moved(to, 1000), Src: moved(from, 1000), Size: 1000}}
		}
		r.fail("cuEventRecord", 1, 719)
		require.Error(t, copied(r.CopyBatch(both(host, device), first)))
		require.NoError(t, copied(r.CopyBatch(both(target, source), second)))
		require.NoError(t, r.Synchronize(0, first))
		require.NoError(t, r.Synchronize(0, second))
		assert.Equal(t, want, r.readAll(t, target, 2000), way)
	}
}

// Drivers may have the function and refuse it, as where a device is shared.
func TestBatchesThatAreRefused(t *testing.T) {
	for _, code := range []int{invalidValue, notSupported} {
		r := emulate(t, nil)
		random := rand.New(rand.NewPCG(3, 5))
		r.fail("cuMemcpyBatchAsync", 0, code)
		r.testBatch(t, random, backends.CUDA, backends.Malloc, 0)
		r.testBatch(t, random, backends.Malloc, backends.CUDA, 0)
		assert.Positive(t, r.calls("cuMemcpyBatchAsync"))
	}
}

func TestManySettingThatIsNone(t *testing.T) {
	r := loadEmulated(t, settings{ManySetting: "fast"})
	assert.Contains(t, unavailable(t, r.Backend).Reason, `HAMR_COPY_MANY is "fast": accepted are kernel, batch and single`)
}
