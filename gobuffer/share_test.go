package gobuffer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// allocating is a Fake whose allocations others open: in this process, at another address.
type allocating struct {
	*pooling
	opened atomic.Int64
	lacks  bool
}

func (a *allocating) ExportAllocation(at backends.Region) ([]byte, int, error) {
	if a.lacks {
		return nil, 0, &backends.UnavailableError{Backend: a.Name(), Reason: "it has no handle"}
	}
	return []byte("allocation"), 64, nil
}

func (a *allocating) OpenAllocation(exported []byte, device int) (backends.Region, error) {
	if string(exported) != "allocation" {
		return backends.Region{}, errors.New("another handle")
	}
	at, descriptor, err := a.NewShared(device, pooledBytes)
	a.opened.Add(1)
	return at, errors.Join(err, unix.Close(descriptor))
}

func (a *allocating) CloseAllocation(at backends.Region) error {
	a.opened.Add(-1)
	return a.UnmapShared(at, pooledBytes)
}

// sharers are two Runtimes of one backend: each is another process's to the other.
func sharers(t *testing.T) (b *allocating, here, there *gobuffer.Runtime) {
	o := backendtest.FakeOptions{Identities: []backends.UUID{{7}}}
	b = &allocating{pooling: &pooling{Fake: backendtest.NewFake(o)}}
	runtimes := [2]*gobuffer.Runtime{}
	for i := range runtimes {
		var err error
		runtimes[i], err = gobuffer.NewRuntime(b, host.New())
		require.NoError(t, err)
	}
	t.Cleanup(func() { b.AssertClean(t) })
	return b, runtimes[0], runtimes[1]
}

func zeros32(t *testing.T, r *gobuffer.Runtime, a backends.Allocator, count int) *gobuffer.Array {
	made, err := r.NewFilledArray(arrayiface.Int32, []int{count}, gobuffer.Options{Allocator: a}, gobuffer.Value{})
	require.NoError(t, err)
	return made
}

func liveOf(r *gobuffer.Runtime, a backends.Allocator) int {
	for _, each := range r.Statistics() {
		if each.Allocator == a {
			return int(each.Live)
		}
	}
	return 0
}

// ends waits until what was lent is given back.
func ends(t *testing.T, r *gobuffer.Runtime, a backends.Allocator) {
	require.Eventually(t, func() bool { return liveOf(r, a) == 0 }, time.Minute, time.Millisecond)
}

func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

func TestLentMemoryStaysUntilNobodyHasIt(t *testing.T) {
	for _, way := range []backends.Allocator{backends.CUDA, backends.CUDAAsync} {
		t.Run(way.String(), func(t *testing.T) {
			b, here, there := sharers(t)
			source := zeros32(t, here, way, 100)
			part, err := source.Slice(0, 10, 20, 1)
			require.NoError(t, err)
			shared, err := part.Share(gobuffer.Sharing{Copy: gobuffer.CopyNever})
			require.NoError(t, err)
			assert.False(t, shared.Copied())
			require.NoError(t, part.Close())
			require.NoError(t, source.Close())
			live := func() int { return liveOf(here, way) }
			assert.Equal(t, 1, live(), "nobody has it but a descriptor")

			mine, err := here.OpenShared(shared.Frame(), shared.Descriptors())
			require.NoError(t, err)
			assert.Equal(t, []int{10}, mine.Layout().Shape)
			assert.True(t, mine.Memory().Owned(), "it is this process's own")
			require.NoError(t, mine.Close())

			theirs, err := there.OpenShared(shared.Frame(), shared.Descriptors())
			require.NoError(t, err)
			lease := theirs.Memory().Lease()
			_, err = unix.FcntlInt(uintptr(lease), unix.F_GETFD, 0)
			require.NoError(t, err)
			require.NoError(t, shared.Close())
			assert.Equal(t, 1, live(), "it is open")
			_, err = theirs.Share(gobuffer.Sharing{Copy: gobuffer.CopyNever})
			require.ErrorContains(t, err, "another process's")
			require.NoError(t, theirs.Close())
			ends(t, here, way)
			assert.Zero(t, b.opened.Load())
		})
	}
}

// lendsOnce shares an array of a pool, which the other Runtime opens and closes.
func lendsOnce(t *testing.T, here, there *gobuffer.Runtime) {
	t.Helper()
	source := zeros32(t, here, backends.CUDAAsync, 10)
	shared, err := source.Share(gobuffer.Sharing{})
	require.NoError(t, err)
	theirs, err := there.OpenShared(shared.Frame(), shared.Descriptors())
	require.NoError(t, err)
	require.NoError(t, errors.Join(theirs.Close(), shared.Close(), source.Close()))
	ends(t, here, backends.CUDAAsync)
}

func TestPoolsAreImportedOnce(t *testing.T) {
	b, here, there := sharers(t)
	for range 3 {
		lendsOnce(t, here, there)
		assert.Equal(t, 1, b.pools)
	}
}

// A process lends what is of many pools: those that nothing is had of any more are closed in the end.
func TestFewPoolsStayImported(t *testing.T) {
	b, _, there := sharers(t)
	for range 12 {
		here, err := gobuffer.NewRuntime(b, host.New())
		require.NoError(t, err)
		lendsOnce(t, here, there)
	}
	assert.Equal(t, 8, b.pools)
}

func TestWhatIsNotInPlaceIsCopiedOnce(t *testing.T) {
	b, here, there := sharers(t)
	b.lacks = true
	source := zeros32(t, here, backends.CUDA, 10)
	_, err := source.Share(gobuffer.Sharing{Copy: gobuffer.CopyNever})
	assert.ErrorContains(t, err, "in place: it has no handle")
	_, err = source.Share(gobuffer.Sharing{ReadOnly: true})
	assert.ErrorContains(t, err, "for reading only")
	before := openFiles(t)
	shared, err := source.Share(gobuffer.Sharing{})
	require.NoError(t, err)
	assert.True(t, shared.Copied())
	require.NoError(t, source.Close())
	theirs, err := there.OpenShared(shared.Frame(), shared.Descriptors())
	require.NoError(t, err)
	again, err := theirs.Share(gobuffer.Sharing{Copy: gobuffer.CopyNever, ReadOnly: true})
	require.NoError(t, err)
	assert.True(t, again.ReadOnly())
	require.NoError(t, errors.Join(theirs.Close(), shared.Close(), again.Close()))
	assert.Equal(t, before, openFiles(t))
}

func TestFramesThatLie(t *testing.T) {
	_, here, there := sharers(t)
	source := zeros32(t, here, backends.Shared, 100)
	defer source.Close()
	shared, err := source.Share(gobuffer.Sharing{})
	require.NoError(t, err)
	defer shared.Close()
	good := shared.Frame()
	const total, offset, size, first, name = 64, 72, 80, 88, 96
	shape := len(good) - 16
	for _, each := range []struct {
		at  int
		lie uint64
	}{{total, 1 << 40}, {offset, 4000}, {offset, 1<<64 - 8}, {size, 1 << 49}, {first, 4}, {shape, 101}, {shape + 8,
		1 << 62}} {
		bad := bytes.Clone(good)
		binary.LittleEndian.PutUint64(bad[each.at:], each.lie)
		_, err := there.OpenShared(bad, shared.Descriptors())
		assert.Error(t, err, "%v", each)
	}
	for at, lie := range map[int]byte{0: 'x', 7: 2, 8: 9, 9: 128, 10: 2, 11: 65, 12: 1, 14: 77, 15: 1, 32: 1, name: 200,
		name + 1: 'x'} {
		bad := bytes.Clone(good)
		bad[at] = lie
		_, err := there.OpenShared(bad, shared.Descriptors())
		var argument *gobuffer.ArgumentError
		assert.ErrorAs(t, err, &argument, "%d at %d", lie, at)
	}
	for _, each := range [][]int{nil, {0, 1}, {-1}} {
		_, err := there.OpenShared(good, each)
		assert.Error(t, err, "%v", each)
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	_, err = there.OpenShared(good, []int{int(file.Fd())})
	assert.ErrorContains(t, err, "not of shared memory")
	for n := range good {
		_, err := there.OpenShared(good[:n], shared.Descriptors())
		assert.Error(t, err)
	}
	long := append(bytes.Clone(good), 0)
	_, err = there.OpenShared(long, shared.Descriptors())
	assert.Error(t, err)
	long[12]++
	_, err = there.OpenShared(long, shared.Descriptors())
	assert.Error(t, err, "what nobody reads")
}

// A frame of lent memory that says it is the host's is refused, as the host lends none.
func TestLentMemoryThatIsSaidToBeOfTheHost(t *testing.T) {
	_, here, there := sharers(t)
	for _, way := range []backends.Allocator{backends.CUDA, backends.CUDAAsync} {
		source := zeros32(t, here, way, 10)
		shared, err := source.Share(gobuffer.Sharing{})
		require.NoError(t, err)
		lie := shared.Frame()
		lie[14] = byte(backends.Malloc)
		clear(lie[32:48]) // the device
		_, err = there.OpenShared(lie, shared.Descriptors())
		require.ErrorIs(t, err, backends.ErrUnavailable)
		require.NoError(t, errors.Join(shared.Close(), source.Close()))
		ends(t, here, way)
	}
}

// Whatever is changed in a frame, nothing is opened beside the memory.
func FuzzOpenShared(f *testing.F) {
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(f, err)
	source, err := r.NewArray(arrayiface.Int32, []int{3, 1000}, gobuffer.Options{Allocator: backends.Shared})
	require.NoError(f, err)
	shared, err := source.Share(gobuffer.Sharing{})
	require.NoError(f, err)
	f.Add(shared.Frame())
	f.Fuzz(func(t *testing.T, frame []byte) {
		a, err := r.OpenShared(frame, shared.Descriptors())
		if err != nil {
			return
		}
		low, high := a.Layout().Span()
		start := int(a.Address() - a.Memory().Region().Address)
		if a.Layout().Count() > 0 && (start+low < 0 || start+high > a.Memory().Size()) {
			t.Errorf("bytes %d … %d of %d", start+low, start+high, a.Memory().Size())
		}
		require.NoError(t, a.Close())
	})
}
