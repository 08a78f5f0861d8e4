package cuda

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

// tagged is memory of device 0 or 1 that a tag pauses: of CUDAVMM, or cut from it.
func (r *rig) tagged(t testing.TB, tag backends.Tag, a backends.Allocator, device, size int) backends.Region {
	t.Helper()
	at, err := r.Allocate(backends.Request{Allocator: a, Device: device, Size: size, Tag: tag})
	require.NoError(t, err)
	return backends.Region{Address: at, Allocator: a, Device: device}
}

// written puts bytes into a device's memory, and returns them.
func (r *rig) written(t testing.TB, at backends.Region, size int, seed byte) []byte {
	t.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = seed + byte(i*7)
	}
	r.write(t, at, data)
	return data
}

// unused is how many bytes of a device nobody has.
func (r *rig) unused(t testing.TB, device int) int64 {
	t.Helper()
	free, _, err := r.MemoryInfo(device)
	require.NoError(t, err)
	return free
}

func TestPausedMemoryIsFreeAndComesBackWhereItWas(t *testing.T) {
	for _, keep := range []backends.Keep{backends.KeepNothing, backends.KeepHost, backends.KeepDisk} {
		t.Run(keep.String(), func(t *testing.T) {
			r := emulate(t, withDevices(2))
			tag := backends.TagOf(t.Name())
			require.NoError(t, r.Enable(1, 0))
			before := [2]int64{r.unused(t, 0), r.unused(t, 1)}
			own := r.tagged(t, tag, backends.CUDAVMM, 0, 3*unit)
			far := r.tagged(t, tag, backends.CUDAVMM, 1, unit)
			small := r.tagged(t, tag, backends.CUDA, 0, 1000)
			wants := map[backends.Region][]byte{}
			for i, at := range []backends.Region{own, far, small} {
				wants[at] = r.written(t, at, 1000, byte(i))
			}
			for round := range 3 {
				require.NoError(t, r.Pause(tag, keep, ""))
				require.NoError(t, r.Pause(tag, keep, ""), "again")
				assert.Equal(t, before, [2]int64{r.unused(t, 0), r.unused(t, 1)})
				for at := range wants {
					var refused *backends.PausedError
					require.ErrorAs(t, r.Fill(at, []byte{1}, 10, 0), &refused)
					assert.Equal(t, tag, refused.Tag)
					_, err := r.Copy(at, at, 10, 0)
					require.ErrorAs(t, err, &refused)
				}
				require.NoError(t, r.Resume(tag))
				require.NoError(t, r.Resume(tag), "again")
				for at, want := range wants {
					if keep != backends.KeepNothing {
						assert.Equal(t, want, r.read(t, at, 1000, 0), "round %d", round)
					}
					wants[at] = r.written(t, at, 1000, byte(round))
				}
			}
			v, err := r.enter(1, legacyStream)
			require.NoError(t, err)
			assert.NoError(t, r.call(r.driver.Memset8, uintptr(own.Address), 7, 10, uintptr(legacyStream)),
				"devices that are connected reach it again")
			v.leave()
			for at := range wants {
				require.NoError(t, r.Free(at, 1000, 0))
			}
		})
	}
}

func TestPauseKeepsOneWay(t *testing.T) {
	r := emulate(t, withDevices(1))
	tag := backends.TagOf(t.Name())
	at := r.tagged(t, tag, backends.CUDAVMM, 0, 100)
	require.NoError(t, r.Pause(tag, backends.KeepNothing, ""))
	assert.ErrorContains(t, r.Pause(tag, backends.KeepHost, ""), "keeps nothing")
	_, err := r.Allocate(backends.Request{Allocator: backends.CUDAVMM, Size: 100, Tag: tag})
	assert.ErrorContains(t, err, t.Name())
	_, err = r.Allocate(backends.Request{Allocator: backends.CUDA, Size: 100, Tag: tag})
	assert.ErrorContains(t, err, t.Name())
	_, err = r.Grow(at, 100, 2*unit)
	assert.ErrorContains(t, err, t.Name())
	_, _, err = r.Relocate(at, 100, 2*unit)
	assert.ErrorContains(t, err, t.Name())
	found, err := r.Locate(at.Address)
	require.NoError(t, err)
	assert.Equal(t, backends.CUDAVMM, found.Allocator, "though the driver knows nothing of it")
	require.NoError(t, r.Free(at, 100, 0))
	require.NoError(t, r.Resume(tag))
}

func TestMemoryThatIsPausedCanBeFreed(t *testing.T) {
	for _, keep := range []backends.Keep{backends.KeepNothing, backends.KeepHost, backends.KeepDisk} {
		r := emulate(t, withDevices(1))
		tag := backends.TagOf(t.Name() + keep.String())
		list := []backends.Region{r.tagged(t, tag, backends.CUDAVMM, 0, unit),
			r.tagged(t, tag, backends.CUDA, 0, 4*unit), r.tagged(t, tag, backends.CUDA, 0, 10)}
		stays := r.tagged(t, tag, backends.CUDAVMM, 0, unit)
		want := r.written(t, stays, 1000, 3)
		require.NoError(t, r.Pause(tag, keep, ""))
		for _, at := range list {
			require.NoError(t, r.Free(at, 10, 0))
		}
		require.NoError(t, r.Trim())
		require.NoError(t, r.Resume(tag))
		if keep != backends.KeepNothing {
			assert.Equal(t, want, r.read(t, stays, 1000, 0))
		}
		require.NoError(t, r.Free(stays, 0, 0))
	}
}

// The emulator takes it for a misuse if work is pending on what is unmapped.
func TestPauseWaitsForAllWork(t *testing.T) {
	r := emulate(t, withDevices(2))
	tag := backends.TagOf(t.Name())
	at, other := r.tagged(t, tag, backends.CUDAVMM, 0, unit), r.tagged(t, tag, backends.CUDAVMM, 0, unit)
	far := r.reserve(t, backends.CUDA, 1, unit, 0)
	own, err := r.NewStream(1)
	require.NoError(t, err)
	_, err = r.Copy(far.Region, other, unit, own)
	require.NoError(t, err)
	foreign := r.newForeignStream(t, r.devices[0].context.Load())
	require.NoError(t, r.Fill(at, []byte{9}, unit, foreign))
	require.NoError(t, r.Pause(tag, backends.KeepHost, ""))
	require.NoError(t, r.Resume(tag))
	assert.Equal(t, bytes.Repeat([]byte{9}, 100), r.read(t, at, 100, 0))
	require.NoError(t, r.Free(at, unit, 0))
	require.NoError(t, r.Free(other, unit, 0))
	require.NoError(t, r.DestroyStream(1, own))
}

// Else nobody would have the memory again.
func TestAPoolOfATagKnowsThatAStreamEnds(t *testing.T) {
	r := emulate(t, withDevices(1))
	tag := backends.TagOf(t.Name())
	own, err := r.NewStream(0)
	require.NoError(t, err)
	request := backends.Request{Allocator: backends.CUDA, Size: 5000, Stream: own, Tag: tag}
	at, err := r.Allocate(request)
	require.NoError(t, err)
	region := backends.Region{Address: at, Allocator: backends.CUDA}
	require.NoError(t, r.Fill(region, []byte{1}, 5000, own))
	require.NoError(t, r.Synchronize(0, own))
	require.NoError(t, r.Free(region, 5000, own))
	require.NoError(t, r.DestroyStream(0, own))
	require.NoError(t, r.SynchronizeDevice(0))
	other, err := r.NewStream(0)
	require.NoError(t, err)
	request.Stream = other
	again, err := r.Allocate(request)
	require.NoError(t, err)
	assert.Equal(t, at, again)
	region.Address = again
	require.NoError(t, r.Free(region, 5000, other))
	require.NoError(t, r.DestroyStream(0, other))
}

func TestAResumeWithoutRoomLeavesAllPaused(t *testing.T) {
	r := emulate(t, settings{"HAMR_EMULATOR_DEVICES": "1", "HAMR_EMULATOR_MEMORY": fmt.Sprint(32 << 20)})
	tag := backends.TagOf(t.Name())
	first, second := r.tagged(t, tag, backends.CUDAVMM, 0, 4*unit), r.tagged(t, tag, backends.CUDAVMM, 0, 4*unit)
	wants := [][]byte{r.written(t, first, 1000, 1), r.written(t, second, 1000, 2)}
	require.NoError(t, r.Pause(tag, backends.KeepHost, ""))
	taken, err := r.Allocate(backends.Request{Allocator: backends.CUDAUnified, Size: 20 << 20})
	require.NoError(t, err)
	before := r.unused(t, 0)
	for range 2 {
		var full *backends.OutOfMemoryError
		require.ErrorAs(t, r.Resume(tag), &full)
		assert.Equal(t, 8*unit, full.Size)
		assert.Equal(t, before, r.unused(t, 0), "what was mapped is given back")
		assert.Error(t, r.Fill(first, []byte{1}, 10, 0))
	}
	require.NoError(t, r.Free(backends.Region{Address: taken, Allocator: backends.CUDAUnified}, 0, 0))
	require.NoError(t, r.Resume(tag))
	for i, at := range []backends.Region{first, second} {
		assert.Equal(t, wants[i], r.read(t, at, 1000, 0))
		require.NoError(t, r.Free(at, 0, 0))
	}
}

func TestADiskThatIsFullLeavesAllAsItWas(t *testing.T) {
	r := emulate(t, withDevices(1))
	tag := backends.TagOf(t.Name())
	at := r.tagged(t, tag, backends.CUDAVMM, 0, unit)
	want := r.written(t, at, 1000, 1)
	var missing *backends.NotKeptError
	require.ErrorAs(t, r.Pause(tag, backends.KeepDisk, "/dev/full/none"), &missing)
	folder := t.TempDir()
	require.NoError(t, r.Pause(tag, backends.KeepDisk, folder))
	names, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Empty(t, names, "the file has no name")
	require.NoError(t, r.Resume(tag))
	assert.Equal(t, want, r.read(t, at, 1000, 0))
	require.NoError(t, r.Free(at, 0, 0))
}

// TestPausingUnderWork has threads work on memory while others pause and resume it.
func TestPausingUnderWork(t *testing.T) {
	r := emulate(t, withDevices(1))
	tag := backends.TagOf(t.Name())
	list := []backends.Region{r.tagged(t, tag, backends.CUDAVMM, 0, unit), r.tagged(t, tag, backends.CUDA, 0, 5000)}
	var group sync.WaitGroup
	done := make(chan struct{})
	for _, at := range list {
		group.Go(func() {
			var refused *backends.PausedError
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := r.Fill(at, []byte{5}, 5000, 0); err != nil {
					assert.ErrorAs(t, err, &refused)
				}
			}
		})
	}
	group.Go(func() {
		defer close(done)
		for i := range 100 {
			assert.NoError(t, r.Pause(tag, backends.Keep(i%2), ""))
			assert.NoError(t, r.Resume(tag))
		}
	})
	group.Wait()
	for _, at := range list {
		require.NoError(t, r.Free(at, 0, 0))
	}
}

// TestPausesByTheModel walks at random over memory of two tags on two devices, and compares with plain bytes.
func TestPausesByTheModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { walkPauses(t, rand.New(rand.NewPCG(seed, 40))) })
	}
}

type pausedBlock struct {
	at       backends.Region
	tag      int
	size     int
	contents []byte // nil where they are lost
}

func walkPauses(t *testing.T, random *rand.Rand) {
	r := emulate(t, withDevices(2))
	tags := []backends.Tag{backends.TagOf(t.Name() + "a"), backends.TagOf(t.Name() + "b")}
	kept := []int{-1, -1} // how, of a tag that is paused
	var blocks []*pausedBlock
	buffer, host := r.host(t, 6*unit)
	for range 150 {
		tag := random.IntN(2)
		paused := kept[tag] >= 0
		switch what := random.IntN(10); {
		case what < 2:
			keep := backends.Keep(random.IntN(3))
			err := r.Pause(tags[tag], keep, "")
			if paused && kept[tag] != int(keep) {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err)
			kept[tag] = int(keep)
			for _, b := range blocks {
				if b.tag == tag && keep == backends.KeepNothing {
					b.contents = nil
				}
			}
		case what < 4:
			require.NoError(t, r.Resume(tags[tag]))
			kept[tag] = -1
		case what < 6 && len(blocks) < 12:
			size := []int{10, 3000, unit, 3 * unit}[random.IntN(4)]
			a, device := []backends.Allocator{backends.CUDA, backends.CUDAVMM}[random.IntN(2)], random.IntN(2)
			at, err := r.Allocate(backends.Request{Allocator: a, Device: device, Size: size, Tag: tags[tag]})
			if paused {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err)
			blocks = append(blocks, &pausedBlock{backends.Region{Address: at, Allocator: a, Device: device}, tag, size, nil})
		case len(blocks) == 0:
		case what < 7:
			i := random.IntN(len(blocks))
			require.NoError(t, r.Free(blocks[i].at, blocks[i].size, 0))
			blocks = append(blocks[:i], blocks[i+1:]...)
		case what < 9:
			b := blocks[random.IntN(len(blocks))]
			for i := range b.size {
				buffer[i] = byte(random.IntN(256))
			}
			_, err := r.Copy(b.at, host, b.size, 0)
			require.Equal(t, kept[b.tag] >= 0, err != nil)
			if err == nil {
				require.NoError(t, r.Synchronize(b.at.Device, 0))
				b.contents = bytes.Clone(buffer[:b.size])
			}
		default:
			b := blocks[random.IntN(len(blocks))]
			_, err := r.Copy(host, b.at, b.size, 0)
			require.Equal(t, kept[b.tag] >= 0, err != nil)
			if err == nil {
				require.NoError(t, r.Synchronize(b.at.Device, 0))
			}
			if err == nil && b.contents != nil {
				require.True(t, bytes.Equal(b.contents, buffer[:b.size]))
			}
		}
	}
	for _, b := range blocks {
		require.NoError(t, r.Free(b.at, b.size, 0))
	}
}

// pauseAndResume are operations of which each call fails in turn, after which all is as it was.
func pauseAndResume() (list []operation) {
	for _, keep := range []backends.Keep{backends.KeepNothing, backends.KeepHost, backends.KeepDisk} {
		for _, resumes := range []bool{false, true} {
			name := map[bool]string{false: "pause", true: "resume"}[resumes]
			list = append(list, operation{name + ", keeping " + keep.String(), 2,
				func(t *testing.T, r *rig) func() (func() error, error) {
					tag := backends.TagOf(t.Name())
					at := r.tagged(t, tag, backends.CUDAVMM, 0, unit)
					other := r.tagged(t, tag, backends.CUDAVMM, 0, unit)
					_, err := r.Grow(at, unit, 2*unit)
					require.NoError(t, err)
					want := r.written(t, at, 2*unit, 1)
					t.Cleanup(func() {
						assert.NoError(t, r.Resume(tag))
						if keep != backends.KeepNothing {
							assert.True(t, bytes.Equal(want, r.read(t, at, 2*unit, 0)), "the contents")
						}
						assert.NoError(t, r.Free(at, 2*unit, 0))
						assert.NoError(t, r.Free(other, unit, 0))
					})
					if resumes {
						require.NoError(t, r.Pause(tag, keep, ""))
						return func() (func() error, error) {
							return func() error { return r.Pause(tag, keep, "") }, r.Resume(tag)
						}
					}
					return func() (func() error, error) {
						return func() error { return r.Resume(tag) }, r.Pause(tag, keep, "")
					}
				}})
		}
	}
	return list
}
