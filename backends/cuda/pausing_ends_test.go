package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
)

func TestAFileThatIsShortenedKeepsAllPaused(t *testing.T) {
	r := emulate(t, withDevices(1))
	tag := backends.TagOf(t.Name())
	at := r.tagged(t, tag, backends.CUDAVMM, 0, unit)
	before := r.unused(t, 0) + unit
	require.NoError(t, r.Pause(tag, backends.KeepDisk, ""))
	require.NoError(t, r.pauses.groupOf(tag).kept.file.Truncate(100))
	for range 2 {
		require.ErrorContains(t, r.Resume(tag), "shortened")
		assert.Equal(t, before, r.unused(t, 0))
	}
	require.NoError(t, r.Free(at, 0, 0))
	require.NoError(t, r.Resume(tag))
}

func TestAPauseTakesPageLockedMemoryThatOthersHaveForTheNextTime(t *testing.T) {
	r := emulate(t, withDevices(1))
	tags := []backends.Tag{backends.TagOf(t.Name()), backends.TagOf(t.Name() + " other")}
	var list []backends.Region
	for i, tag := range tags {
		list = append(list, r.tagged(t, tag, backends.CUDAVMM, 0, (i+1)*20*unit))
	}
	require.NoError(t, r.Pause(tags[0], backends.KeepHost, ""))
	require.NoError(t, r.Resume(tags[0]))
	r.fail("cuMemHostRegister_v2", 0, outOfMemory)
	for nth := 1; nth <= 2; nth++ { // the pool has nothing, and tries again
		r.fail("cuMemHostAlloc", nth, outOfMemory)
	}
	require.NoError(t, r.Pause(tags[1], backends.KeepHost, ""))
	r.stopFailing()
	require.NoError(t, r.Resume(tags[1]))
	for _, at := range list {
		require.NoError(t, r.Free(at, 0, 0))
	}
}

func TestATagWithoutMemoryHasNoPageLockedMemory(t *testing.T) {
	r := emulate(t, withDevices(1))
	tag := backends.TagOf(t.Name())
	list := []backends.Region{r.tagged(t, tag, backends.CUDAVMM, 0, unit), r.tagged(t, tag, backends.CUDAVMM, 0, unit)}
	require.NoError(t, r.Pause(tag, backends.KeepHost, ""))
	require.NoError(t, r.Resume(tag))
	for i, at := range list {
		assert.EqualValues(t, 2*unit, r.Paused()[0].Locked, "%d freed", i)
		require.NoError(t, r.Free(at, 0, 0))
	}
	assert.Zero(t, r.pauses.groupOf(tag).locked())
	assert.Empty(t, r.Paused())
}

func TestATrimLeavesWhatIsBeingPaused(t *testing.T) {
	r := emulate(t, withDevices(1))
	tag := backends.TagOf(t.Name())
	at := r.tagged(t, tag, backends.CUDA, 0, 4*unit)
	require.NoError(t, r.Free(at, 4*unit, 0))
	g := r.pauses.groupOf(tag)
	g.changing.Lock()
	require.NoError(t, r.devices[0].tagged.of(tag).Trim())
	require.NoError(t, r.Trim())
	assert.NotEmpty(t, g.extents)
	g.changing.Unlock()
	require.NoError(t, r.Trim())
	assert.Empty(t, r.Paused())
}

// New memory of it is refused, so there has to be a way to see why.
func TestATagThatIsPausedIsListedWithoutMemory(t *testing.T) {
	r := emulate(t, withDevices(1))
	tag := backends.TagOf(t.Name())
	at := r.tagged(t, tag, backends.CUDAVMM, 0, unit)
	require.NoError(t, r.Pause(tag, backends.KeepHost, ""))
	require.NoError(t, r.Free(at, unit, 0))
	assert.Equal(t, []backends.Paused{{Tag: tag, Device: backends.HostDevice, Is: true, Keep: backends.KeepHost}},
		r.Paused())
	require.NoError(t, r.Resume(tag))
	assert.Empty(t, r.Paused())
}
