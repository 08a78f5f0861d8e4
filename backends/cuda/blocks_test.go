package cuda

import (
	"encoding/binary"
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

// scattered is arrays of blocks at random, and what a copy makes of them.
type scattered struct {
	backends.Blocks
	to, from   []int64 // all numbers, as they are given
	have, want []byte  // the target before and after
	target     backends.Region
}

// onHost, counted and the allocators of the device's are how numbers are given.
var givenBy = []backends.Allocator{onHost, counted, backends.CUDA, backends.CUDAAsync, backends.CUDAUnified,
	backends.CUDAHost}

const (
	onHost  = backends.Malloc
	counted = backends.None
)

// index gives numbers of extent blocks. Where a device reads them, some count from the end.
func (r *rig) index(t *testing.T, random *rand.Rand, by backends.Allocator, numbers []int64,
	extent int) backends.BlockIndex {
	i := backends.BlockIndex{Extent: extent}
	switch by {
	case onHost:
		i.List = slices.Clone(numbers)
		return i
	case counted:
		for k := range numbers {
			numbers[k] = int64(k)
		}
		return i
	}
	i.Width = []int{4, 8}[random.IntN(2)]
	var data []byte
	for k := range numbers {
		if random.IntN(3) == 0 {
			numbers[k] -= int64(extent)
		}
		if i.Width == 4 {
			data = binary.NativeEndian.AppendUint32(data, uint32(int32(numbers[k])))
		} else {
			data = binary.NativeEndian.AppendUint64(data, uint64(numbers[k]))
		}
	}
	i.Region = r.room(t, by, len(data))
	require.NoError(t, r.Synchronize(0, 0))
	r.write(t, i.Region, data)
	return i
}

// layOut places planes of count blocks in size bytes: their strides, and where each begins.
func layOut(random *rand.Rand, planes, count, block, size, unit int) (stride int, starts []int) {
	gap := size/(planes*count)/unit*unit - block
	stride = block + random.IntN(gap/unit+1)*unit
	if random.IntN(2) == 0 {
		stride = block // side by side
	}
	for p := range planes {
		starts = append(starts, p*(size/planes/unit*unit))
	}
	if random.IntN(4) == 0 {
		for p := range starts {
			starts[p] += (count - 1) * stride
		}
		return -stride, starts
	}
	return stride, starts
}

func blockAt(start, stride, number, extent int) int {
	if number < 0 {
		number += extent
	}
	return start + stride*number
}

const scatteredRoom = 150_000

// someCount is as many indices as one launch copies, or as several do.
func someCount(random *rand.Rand) int {
	near := mostChecked*(1+random.IntN(3)) - 1 + random.IntN(3)
	return []int{1 + random.IntN(1000), 1 + random.IntN(3*mostChecked), near}[random.IntN(3)]
}

// scatter makes a copy of random blocks. Those that are named twice are named by a device.
func (r *rig) scatter(t *testing.T, random *rand.Rand, to, from, toBy, fromBy backends.Allocator) *scattered {
	s := &scattered{}
	unit := []int{1, 2, 4, 8, 16}[random.IntN(5)]
	s.Size = unit * (1 + random.IntN([]int{4, 100, 4096 / unit, 65536/unit - 1}[random.IntN(4)]))
	most := (scatteredRoom - 16) / s.Size // in all planes
	planes := 1 + random.IntN(min(most, []int{1, 4, 300}[random.IntN(3)]))
	most = min(most/planes, []int{700, 3*mostChecked + 1}[random.IntN(2)])
	extents := [2]int{1 + random.IntN(most), 1 + random.IntN(most)}
	s.Count = min(someCount(random), extents[0])
	if toBy != onHost && toBy != counted && random.IntN(2) == 0 {
		s.Repeated = true
		s.Count = someCount(random)
	}
	if fromBy == counted {
		s.Count = min(s.Count, extents[1])
	}
	order := random.Perm(extents[0])
	for k := range s.Count {
		s.to = append(s.to, int64(order[k%extents[0]]))
		s.from = append(s.from, int64(random.IntN(extents[1])))
	}
	s.target = r.room(t, to, scatteredRoom)
	source := r.room(t, from, scatteredRoom)
	require.NoError(t, r.Synchronize(0, 0))
	s.have = make([]byte, scatteredRoom)
	data := make([]byte, scatteredRoom)
	for i := range data {
		data[i], s.have[i] = byte(random.Uint32()), byte(random.Uint32())
	}
	r.write(t, source, data)
	r.write(t, s.target, s.have)
	s.To = r.index(t, random, toBy, s.to, extents[0])
	s.From = r.index(t, random, fromBy, s.from, extents[1])
	s.want = slices.Clone(s.have)
	shift := [2]int{random.IntN(16/unit) * unit, random.IntN(16/unit) * unit}
	toStride, toStarts := layOut(random, planes, extents[0], s.Size, scatteredRoom-16, unit)
	fromStride, fromStarts := layOut(random, planes, extents[1], s.Size, scatteredRoom-16, unit)
	for p := range planes {
		toStart, fromStart := toStarts[p]+shift[0], fromStarts[p]+shift[1]
		s.Planes = append(s.Planes, backends.Plane{Dst: moved(s.target, toStart), Src: moved(source, fromStart),
			DstStride: toStride, SrcStride: fromStride})
		for k := range s.Count {
			at := blockAt(toStart, toStride, int(s.to[k]), extents[0])
			copy(s.want[at:at+s.Size], data[blockAt(fromStart, fromStride, int(s.from[k]), extents[1]):])
		}
	}
	return s
}

// got reads the target when a stream has passed.
func (r *rig) got(t *testing.T, s *scattered, stream backends.Stream) []byte {
	require.NoError(t, r.Synchronize(0, stream))
	if s.target.Allocator.ReachableFrom(backends.SpaceHost) {
		return slices.Clone(hostBytes(s.target.Address, len(s.want)))
	}
	return r.readAll(t, s.target, len(s.want))
}

// onBlocks runs a test over the emulator, and over the driver of this machine.
func onBlocks(t *testing.T, s settings, test func(t *testing.T, r *rig)) {
	t.Run(fmt.Sprintf("emulator %v", s), func(t *testing.T) {
		r := emulate(t, s)
		test(t, r)
		r.failures.collect(&r.memoryFloor)
		assert.Empty(t, r.failures.pending)
	})
	t.Run(fmt.Sprintf("driver %v", s), func(t *testing.T) { test(t, openDriver(t, s)) })
}

var blockKinds = [][2]backends.Allocator{{backends.CUDA, backends.CUDAHost}, {backends.CUDAHost, backends.CUDAAsync},
	{backends.CUDA, backends.CUDAAsync}}

// TestRandomBlocks copies blocks of random sizes and alignments, which are named in each way.
func TestRandomBlocks(t *testing.T) {
	for _, more := range []settings{nil, {GridSetting: "1"}, {PoolSetting: checkedPool}, {PoolSetting: withoutPool}} {
		onBlocks(t, maps.Clone(more), func(t *testing.T, r *rig) {
			random := rand.New(rand.NewPCG(7, 8))
			own := r.newStream(t, 0)
			for _, k := range blockKinds {
				for _, toBy := range givenBy {
					for _, fromBy := range givenBy {
						if (more != nil || raceDetector) && random.IntN(5) > 0 { // it makes a launch 20 times slower
							continue
						}
						stream := []backends.Stream{0, legacyStream, perThreadStream, own}[random.IntN(4)]
						t.Run(fmt.Sprintf("%s by %s, %s by %s", k[0], toBy, k[1], fromBy), func(t *testing.T) {
							s := r.scatter(t, random, k[0], k[1], toBy, fromBy)
							left, err := r.CopyBlocks(&s.Blocks, stream)
							require.NoError(t, err)
							assert.Equal(t, late, left)
							require.True(t, slices.Equal(s.want, r.got(t, s, stream)), "%d planes, %d of %d bytes", len(s.Planes),
								s.Count, s.Size)
							if s.Failed != nil {
								assert.Nil(t, s.Failed())
							}
						})
					}
				}
			}
		})
	}
}

// TestRandomBlocksOfOrdinaryMemory are staged, by chunks that hold many blocks or one.
func TestRandomBlocksOfOrdinaryMemory(t *testing.T) {
	for _, more := range []settings{nil, {staging.ChunkSetting: "700", staging.ThreadsSetting: "3"},
		{staging.ChunkSetting: "20000"}} {
		onBlocks(t, maps.Clone(more), func(t *testing.T, r *rig) {
			random := rand.New(rand.NewPCG(17, 18))
			own := r.newStream(t, 0)
			for round := range 60 {
				k := [][2]backends.Allocator{{backends.CUDA, backends.Malloc}, {backends.Malloc, backends.CUDAAsync}}[round%2]
				by := func() backends.Allocator { return givenBy[random.IntN(2)] }
				stream := []backends.Stream{0, legacyStream, perThreadStream, own}[random.IntN(4)]
				s := r.scatter(t, random, k[0], k[1], by(), by())
				left, err := r.CopyBlocks(&s.Blocks, stream)
				require.NoError(t, err)
				if k[1] == backends.Malloc {
					assert.Equal(t, backends.Writing, left)
					require.True(t, slices.Equal(s.want, r.got(t, s, stream)), "up, round %d", round)
				} else {
					assert.Equal(t, backends.Complete, left)
					require.True(t, slices.Equal(s.want, hostBytes(s.target.Address, len(s.want))), "down, round %d", round)
				}
			}
		})
	}
}

// TestIndicesOutOfRange are named by a device, and nothing is copied.
func TestIndicesOutOfRange(t *testing.T) {
	onBlocks(t, nil, func(t *testing.T, r *rig) {
		random := rand.New(rand.NewPCG(9, 10))
		stream := r.newStream(t, 0)
		for round := range 30 {
			k := blockKinds[round%len(blockKinds)]
			s := r.scatter(t, random, k[0], k[1], backends.CUDA, backends.CUDAHost)
			bad := &backends.BadIndex{To: random.IntN(2) == 0, Position: random.IntN(s.Count)}
			index := s.From
			if bad.To {
				index = s.To
			}
			bad.Value = []int64{int64(index.Extent), -int64(index.Extent) - 1, 1 << 30, -1 << 31}[random.IntN(4)]
			later := []*backends.BadIndex{bad}
			if bad.To { // the first of the targets counts, whatever else is wrong
				later = append(later, &backends.BadIndex{Position: random.IntN(s.Count), Value: -1 << 31})
			}
			for more := bad.Position + 1; more < s.Count; more += 1 + random.IntN(100) {
				later = append(later, &backends.BadIndex{To: bad.To, Position: more, Value: 1<<31 - 1})
			}
			for _, each := range later {
				to := s.From
				if each.To {
					to = s.To
				}
				data := binary.NativeEndian.AppendUint64(nil, uint64(each.Value))
				if to.Width == 4 {
					data = binary.NativeEndian.AppendUint32(nil, uint32(each.Value))
				}
				r.write(t, moved(to.Region, each.Position*to.Width), data)
			}
			_, err := r.CopyBlocks(&s.Blocks, stream)
			require.NoError(t, err)
			require.True(t, slices.Equal(s.have, r.got(t, s, stream)), "something was copied")
			assert.Equal(t, bad, s.Failed())
		}
	})
}

// TestReportsAreReadLate: nobody asks for most, and one that is asked for too early says nothing yet.
func TestReportsAreReadLate(t *testing.T) {
	r := emulate(t, nil)
	random := rand.New(rand.NewPCG(11, 12))
	stream := r.newStream(t, 0)
	s := r.scatter(t, random, backends.CUDA, backends.CUDA, backends.CUDA, counted)
	r.write(t, s.To.Region, make([]byte, s.Count*s.To.Width))
	r.write(t, s.To.Region, binary.NativeEndian.AppendUint32(nil, 1<<30))
	var failed []backends.BlockFailure
	for range 5 {
		_, err := r.CopyBlocks(&s.Blocks, stream)
		require.NoError(t, err)
		assert.Nil(t, s.Failed())
		failed = append(failed, s.Failed)
	}
	require.NoError(t, r.Synchronize(0, stream))
	bad := &backends.BadIndex{To: true, Value: 1 << 30}
	assert.Equal(t, bad, failed[3]())
	assert.Equal(t, bad, failed[3]())
	_, err := r.CopyBlocks(&s.Blocks, stream)
	require.NoError(t, err)
	assert.Len(t, r.failures.pending, 1)
	assert.Equal(t, bad, failed[0]())
	require.NoError(t, r.Synchronize(0, stream))
	r.failures.collect(&r.memoryFloor)
}

// TestReportsAfterAFailure are others' memory at once, and no kernel writes to it.
func TestReportsAfterAFailure(t *testing.T) {
	r := emulate(t, nil)
	stream := r.newStream(t, 0)
	target, index := r.room(t, backends.CUDA, 64), r.room(t, backends.CUDA, 4)
	r.write(t, index, binary.NativeEndian.AppendUint32(nil, 1<<30))
	blocks := &backends.Blocks{Size: 1, Count: 1, To: backends.BlockIndex{Region: index, Width: 4, Extent: 3},
		From: backends.BlockIndex{Extent: 4}, Planes: []backends.Plane{{Dst: target, Src: moved(target, 8)}}}
	r.fail("cuEventRecord", 1, 719)
	require.Error(t, copied(r.CopyBlocks(blocks, stream)))
	r.stopFailing()
	data, _ := r.host(t, 16)
	clear(data)
	require.NoError(t, r.Synchronize(0, stream))
	assert.Equal(t, make([]byte, 16), data)
}
